// Restores a compressed program that arrives in pieces: node unpack.mjs PROGRAM.BR BYTES > PROGRAM

import { writeFileSync } from "node:fs";
import { read } from "./program.mjs";

writeFileSync(1, await read(process.argv[2], Number(process.argv[3])));
