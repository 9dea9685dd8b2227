// Opens the index of a folder of weeks in Chromium, as readers do on Monday: node --test tests/browser
// The built gleaner (target/debug, or GLEANER_PROGRAMS) makes it; screenshots go to out/screenshots/.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import axe from "axe-core";
import { launch, newContext } from "./chromium.mjs";

const CHECKOUT = fileURLToPath(new URL("../../", import.meta.url));
const GLEANER = join(resolve(process.env.GLEANER_PROGRAMS ?? join(CHECKOUT, "target/debug")), "gleaner");
const SCREENSHOTS = join(CHECKOUT, "out/screenshots/");
const WEEKS = ["2026-W47", "2026-W46"];

describe("the index of reports", () => {
  const folder = mkdtempSync(join(tmpdir(), "gleaner-index-"));
  const reports = join(folder, "reports");
  let browser;
  before(async () => {
    mkdirSync(SCREENSHOTS, { recursive: true });
    const gleaner = (...args) => promisify(execFile)(GLEANER, args);
    const dataset = join(folder, "dataset");
    await gleaner("synth", "-o", dataset, "--hosts", "3", "--days", "14", "--start", "2026-11-09", "--interval", "30m");
    for (const week of [...WEEKS].reverse()) await gleaner("report", dataset, "--week", week, "--folder", reports);
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true });
  });

  for (const [name, options] of Object.entries({
    desktop: { viewport: { width: 1280, height: 900 }, colorScheme: "light" },
    dark: { viewport: { width: 1280, height: 900 }, colorScheme: "dark" },
    phone: { viewport: { width: 390, height: 844 }, colorScheme: "light" },
  })) {
    test(`leads to each week, newest first, and is well on a ${name} screen`, async () => {
      const context = await newContext(browser, options);
      const page = await context.newPage();
      const faults = [];
      page.on("console", (message) => faults.push(message.text()));
      page.on("requestfailed", (request) => faults.push(request.url()));
      await page.goto(pathToFileURL(join(reports, "index.html")).href);
      await page.screenshot({ path: join(SCREENSHOTS, `index-${name}.png`), fullPage: true });
      const links = await page.$$eval("h2 a", (all) => all.map((a) => a.getAttribute("href")));
      assert.deepEqual(links, WEEKS.map((week) => `${week}.html`));
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${wide} px wider than the screen`);
      await page.evaluate(axe.source);
      const { violations } = await page.evaluate(() => window.axe.run(document));
      assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes[0].target}`), []);
      assert.deepEqual(faults, []);
      // Keyboard only: Tab past the skip link to the newest week.
      await page.keyboard.press("Tab");
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      await page.waitForURL("**/2026-W47.html");
      assert.match(await page.title(), /3 hosts/);
      await context.close();
    });
  }
});
