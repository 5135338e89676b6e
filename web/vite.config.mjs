import { defineConfig } from "vite";

// The names of what is built have no hash: the files are committed, and the server tells browsers
// by a tag whether they have changed.
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
