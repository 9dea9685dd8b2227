// Starts everything once the page is loaded.
(() => {
  const root = document.documentElement;
  tables.prepare(document);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => figures.drawIn(document));
  addEventListener("beforeprint", () => { root.dataset.print = ""; figures.drawIn(document); });
  addEventListener("afterprint", () => { delete root.dataset.print; figures.drawIn(document); });
  figures.drawIn(document);
  hosts.start();
})();
