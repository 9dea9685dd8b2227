// Opens each report named in GLEANER_REPORTS (paths, colon-separated) in Chromium, as a reader does:
//   GLEANER_REPORTS=out/demo.html node --test tests/browser
// Screenshots go to out/screenshots/.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { basename, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import axe from "axe-core";
import { chromium } from "playwright-core";

const CHROMIUM = "/usr/bin/chromium";
const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];
const DESKTOP = { width: 1280, height: 900 };
const PHONE = { width: 390, height: 844 };
const SCREENSHOTS = fileURLToPath(new URL("../../out/screenshots/", import.meta.url));

const reports = (process.env.GLEANER_REPORTS ?? "").split(":").filter(Boolean);

test("there are reports to look at", () => {
  assert.notEqual(reports.length, 0, "name the reports in GLEANER_REPORTS, colon-separated");
});

for (const path of reports) {
  const name = basename(path, ".html");
  const address = pathToFileURL(resolve(path)).href;

  describe(name, () => {
    let browser;
    before(async () => {
      mkdirSync(SCREENSHOTS, { recursive: true });
      browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
    });
    after(() => browser?.close());

    /** The report opened, with all that went wrong and all that was asked for. */
    async function open(options) {
      const context = await browser.newContext({ viewport: DESKTOP, colorScheme: "light", ...options });
      const page = await context.newPage();
      const faults = [];
      const requests = [];
      page.on("console", (message) => ["error", "warning"].includes(message.type()) && faults.push(message.text()));
      page.on("pageerror", (error) => faults.push(String(error)));
      page.on("request", (request) => requests.push(request.url()));
      await page.goto(address, { waitUntil: "load" });
      return { page, faults, requests, close: () => context.close() };
    }

    const openAllHosts = (page) =>
      page.evaluate(async () => {
        for (const part of document.querySelectorAll("details")) part.open = true;
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      });

    const seriousFaults = async (page) => {
      await page.evaluate(axe.source);
      const { violations } = await page.evaluate(() => window.axe.run(document));
      return violations
        .filter((v) => ["serious", "critical"].includes(v.impact))
        .map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.target} ${n.any[0]?.message ?? ""}`).join("; ")}`);
    };

    test("draws every figure, says nothing to the console and asks nothing of the network", async () => {
      const { page, faults, requests, close } = await open();
      await openAllHosts(page);
      const plots = await page.$$eval(".plot", (all) =>
        all.map((plot) => ({
          id: plot.closest("figure").id,
          traces: plot.querySelectorAll("svg .trace").length,
          expected: JSON.parse(plot.closest("figure").querySelector("script").textContent).data.length,
          label: plot.getAttribute("aria-label"),
          sentence: plot.closest("figure").querySelector("figcaption p + p").textContent,
        })),
      );
      const promised = await page.$$eval("figure script[type='application/json']", (all) => all.length);
      assert.equal(plots.length, promised);
      for (const plot of plots) {
        assert.equal(plot.traces, plot.expected, `${plot.id}: traces drawn`);
        assert.match(plot.sentence, /\d/, `${plot.id}: a sentence with numbers`);
        assert.ok(plot.label.includes(plot.sentence), `${plot.id}: the sentence is its label`);
      }
      assert.deepEqual(faults, []);
      assert.deepEqual(requests.filter((r) => !r.startsWith("data:") && !r.startsWith("blob:")), [address]);
      await close();
    });

    test("a table sorts by click and by keyboard", async () => {
      const { page, close } = await open();
      const table = page.locator("table[data-sortable]:has(thead th.number):visible").first();
      const header = table.locator("thead th.number").first();
      const index = await header.evaluate((th) => th.cellIndex);
      const values = () =>
        table.locator("tbody tr").evaluateAll((rows, i) => rows.map((r) => r.cells[i].dataset.value).filter((v) => v !== undefined).map(Number), index);
      const sorted = (list) => [...list].sort((a, b) => a - b);
      await header.locator("button").click();
      assert.equal(await header.getAttribute("aria-sort"), "descending");
      assert.deepEqual(await values(), sorted(await values()).reverse());
      await header.locator("button").focus();
      await page.keyboard.press("Enter");
      assert.equal(await header.getAttribute("aria-sort"), "ascending");
      assert.deepEqual(await values(), sorted(await values()));
      await page.keyboard.press("Space");
      assert.equal(await header.getAttribute("aria-sort"), "descending");
      await close();
    });

    test("the first tab stop leads past everything to the report", async () => {
      const { page, close } = await open();
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      assert.equal(await page.evaluate(() => document.activeElement.id), "main");
      const levels = await page.$$eval("h1, h2, h3, h4", (all) => all.map((h) => Number(h.tagName[1])));
      levels.reduce((above, level) => {
        assert.ok(level <= above + 1, `heading level ${above} is followed by ${level}`);
        return level;
      }, 0);
      await close();
    });

    for (const colorScheme of ["light", "dark"]) {
      test(`axe finds nothing serious, ${colorScheme}`, async () => {
        const { page, close } = await open({ colorScheme });
        await openAllHosts(page);
        assert.deepEqual(await seriousFaults(page), []);
        await close();
      });
    }

    test("fits a phone", async () => {
      const { page, close } = await open({ viewport: PHONE, hasTouch: true, isMobile: true, deviceScaleFactor: 2 });
      await openAllHosts(page);
      const widths = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(widths[0] <= PHONE.width, `${widths[0]} px wide in ${PHONE.width}`);
      await page.evaluate(() => document.querySelectorAll("details").forEach((d, i) => (d.open = i === 0)));
      await page.screenshot({ path: `${SCREENSHOTS}${name}-phone.png`, fullPage: true });
      await close();
    });

    test("prints in light colours, whatever the screen's", async () => {
      const { page, faults, close } = await open({ colorScheme: "dark" });
      const screen = await page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--paper"));
      const printed = await page.evaluate(() => {
        dispatchEvent(new Event("beforeprint"));
        return getComputedStyle(document.documentElement).getPropertyValue("--paper");
      });
      assert.notEqual(screen.trim(), printed.trim());
      assert.equal(printed.trim(), "#ffffff");
      assert.deepEqual(faults, []);
      await close();
    });

    for (const colorScheme of ["light", "dark"]) {
      test(`picture, ${colorScheme}`, async () => {
        const { page, close } = await open({ colorScheme });
        await page.evaluate(() => document.querySelectorAll("details").forEach((d, i) => (d.open = i === 0)));
        await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
        const file = `${SCREENSHOTS}${name}-${colorScheme === "dark" ? "dark" : "desktop"}.png`;
        const picture = await page.screenshot({ path: file, fullPage: true });
        assert.ok(picture.length > 50_000, `${file} is nearly empty`);
        await close();
      });
    }
  });
}
