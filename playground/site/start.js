// Starts the worker, which loads the program while the page is built.

export const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
