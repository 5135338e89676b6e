// Loads a module of the page and its imports without a browser.

import { fileURLToPath } from "node:url";
import { build } from "vite";

export async function source(name) {
  const made = await build({
    configFile: false, logLevel: "error",
    build: {
      write: false, minify: false,
      lib: { entry: fileURLToPath(new URL(`../src/${name}`, import.meta.url)), formats: ["es"] },
    },
  });
  const { code } = [made].flat()[0].output[0];
  return import(`data:text/javascript,${encodeURIComponent(code)}`);
}
