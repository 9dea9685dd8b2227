// Opens the site that GLEANER_BOOK names (a folder, `make book`) in Chromium, as a reader does. Screenshots go to
// out/screenshots/book/.
import assert from "node:assert/strict";
import { mkdirSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import axe from "axe-core";
import { DESKTOP, PHONE, launch, newContext } from "./chromium.mjs";

const SIZES = { desktop: DESKTOP, phone: PHONE };
const SCREENSHOTS = fileURLToPath(new URL("../../out/screenshots/book/", import.meta.url));
const BOOK = resolve(process.env.GLEANER_BOOK ?? fileURLToPath(new URL("../../out/book/", import.meta.url)));
const PAGES = readdirSync(BOOK).filter((name) => name.endsWith(".html") && !["404.html", "toc.html"].includes(name));
// Screenshots of one page of each kind are stored.
const PICTURED = ["index.html", "quick-start.html", "commands.html", "capacity.html", "lending.html"];

describe("the book", () => {
  let browser;
  before(async () => {
    mkdirSync(SCREENSHOTS, { recursive: true });
    browser = await launch();
  });
  after(() => browser?.close());

  test("there are pages", () => assert.ok(PAGES.length > 30));

  for (const scheme of ["light", "dark"]) {
    for (const [size, viewport] of Object.entries(SIZES)) {
      test(`is read on a ${size}, ${scheme}`, async () => {
        const context = await newContext(browser, { viewport, colorScheme: scheme, reducedMotion: "reduce" });
        const page = await context.newPage();
        const faults = [];
        const shutOut = new Map();
        page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
        page.on("pageerror", (error) => faults.push(String(error)));
        page.on("request", (request) => {
          if (!/^(file|data|blob):/.test(request.url())) faults.push(`asks for ${request.url()}`);
        });
        for (const name of PAGES) {
          await page.goto(pathToFileURL(join(BOOK, name)).href, { waitUntil: "load" });
          assert.deepEqual(faults, [], name);
          if (PICTURED.includes(name)) {
            await page.screenshot({ path: join(SCREENSHOTS, `${name.replace(".html", "")}-${size}-${scheme}.png`) });
          }
          const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
          assert.ok(wide <= room, `${name} is ${wide} wide where ${room} are`);
          await page.evaluate(axe.source);
          const { violations } = await page.evaluate(() => globalThis.axe.run(document, { preload: false, resultTypes: ["violations"] }));
          const serious = violations.filter((v) => ["serious", "critical"].includes(v.impact));
          for (const { id, nodes } of serious) {
            for (const node of nodes) shutOut.set(`${id}: ${node.failureSummary.split("\n").slice(1).join(" ")}`, `${name}: ${node.html.slice(0, 150)}`);
          }
        }
        assert.deepEqual([...shutOut], [], "no serious accessibility fault");
        await context.close();
      });
    }
  }

  test("a page is found by its words", async () => {
    const context = await newContext(browser, { viewport: SIZES.desktop });
    const page = await context.newPage();
    await page.goto(pathToFileURL(join(BOOK, "index.html")).href, { waitUntil: "load" });
    await page.keyboard.press("s");
    await page.locator("#mdbook-searchbar").pressSequentially("hysteresis");
    await page.locator("#mdbook-searchresults a").first().waitFor();
    await context.close();
  });
});
