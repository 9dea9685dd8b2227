// Measures how soon Chromium shows a report: node bench/open_report.mjs PAGE.html → JSON.
import { pathToFileURL } from "node:url";
import { createRequire } from "node:module";

const require = createRequire(new URL("../tests/browser/package.json", import.meta.url));
const { chromium } = require("playwright-core");

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu"],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
const seconds = (from) => Math.round(performance.now() - from) / 1000;
const drawn = (place) =>
  page.waitForFunction(
    (within) => {
      const plots = [...document.querySelectorAll(`${within} .plot`)];
      return plots.length > 0 && plots.every((plot) => plot.querySelector(".main-svg"));
    },
    place,
    { timeout: 120_000 },
  );
const start = performance.now();
await page.goto(pathToFileURL(process.argv[2]).href, { waitUntil: "load" });
await drawn("main");
const shown_s = seconds(start);
const link = await page.evaluate(() => document.querySelector("a[href^='#host-']")?.getAttribute("href"));
let host_shown_s = null;
if (link) {
  const opened = performance.now();
  await page.evaluate((to) => (location.hash = to), link);
  await drawn("#host-page, [id^='host-']");
  host_shown_s = seconds(opened);
}
const heap = await page.evaluate(() => performance.memory?.usedJSHeapSize ?? null);
const elements_count = await page.evaluate(() => document.querySelectorAll("*").length);
await browser.close();
console.log(JSON.stringify({ shown_s, host_shown_s, elements_count, script_heap_bytes: heap }));
