import { defineConfig } from "vite";

// The names of built files have no hash, because the files are committed. The server sends browsers
// an entity tag, which shows whether a file has changed.
export default defineConfig({
  base: "./",
  root: "src",
  publicDir: false,
  logLevel: "warn",
  build: {
    outDir: "../../internal/api/dist",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rollupOptions: {
      output: {
        entryFileNames: "page.js",
        chunkFileNames: "[name].js",
        assetFileNames: "page[extname]",
        manualChunks: undefined,
      },
    },
  },
});
