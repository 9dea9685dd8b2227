// Opens a report by sites in Chromium: node --test tests/browser
// The built gleaner (target/debug, or GLEANER_PROGRAMS) makes it; screenshots go to out/screenshots/.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import axe from "axe-core";
import { PHONE, launch, newContext } from "./chromium.mjs";

const CHECKOUT = fileURLToPath(new URL("../../", import.meta.url));
const GLEANER = join(resolve(process.env.GLEANER_PROGRAMS ?? join(CHECKOUT, "target/debug")), "gleaner");
const SCREENSHOTS = join(CHECKOUT, "out/screenshots/");

describe("a report by sites", () => {
  const folder = mkdtempSync(join(tmpdir(), "gleaner-sites-"));
  const pageOf = (hosts) => join(folder, `fleet-${hosts}.html`);
  let browser;
  before(async () => {
    mkdirSync(SCREENSHOTS, { recursive: true });
    const gleaner = (...args) => promisify(execFile)(GLEANER, args, { maxBuffer: 1 << 26 });
    for (const hosts of [6, 60]) {
      const dataset = join(folder, `dataset-${hosts}`);
      await gleaner("synth", "-o", dataset, "--hosts", String(hosts), "--days", "7", "--start", "2026-11-16", "--interval", "1h");
      const { stdout } = await gleaner("analyze", dataset, "--json", "--measure", "hosts");
      const names = JSON.parse(stdout).hosts.map((host) => host.host_name);
      // The hosts alternate between two sites; a third of them is at neither.
      const site = (at) => JSON.stringify(names.filter((_, i) => i % 3 === at));
      const sites = join(folder, `sites-${hosts}.toml`);
      writeFileSync(sites, `north = ${site(0)}\nsouth = ${site(1)}\n`);
      await gleaner("report", dataset, "--bootstrap", "20", "--sites", sites, "-o", pageOf(hosts));
    }
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true });
  });

  async function open(options) {
    const context = await newContext(browser, { reducedMotion: "reduce", ...options });
    const page = await context.newPage();
    const faults = [];
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && faults.push(message.text()));
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("requestfailed", (request) => faults.push(request.url()));
    await page.goto(pathToFileURL(pageOf(6)).href, { waitUntil: "load" });
    return { page, faults, close: () => context.close() };
  }

  const column = (page, at) =>
    page.$$eval(`#sites-table tbody tr`, (rows, at) => rows.map((row) => row.cells[at].textContent.trim()), at);

  for (const [name, options] of Object.entries({
    desktop: {},
    dark: { colorScheme: "dark" },
    phone: { viewport: PHONE },
  })) {
    test(`is drawn without a fault and is well on a ${name} screen`, async () => {
      const { page, faults, close } = await open(options);
      await page.waitForFunction(() => [...document.querySelectorAll(".plot")].every((plot) => plot.querySelector(".main-svg")));
      await page.screenshot({ path: join(SCREENSHOTS, `sites-${name}.png`), fullPage: true });
      assert.deepEqual(await page.$$eval("script[data-page]", (all) => all.length), 0);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${wide} px wider than the screen`);
      await page.evaluate(axe.source);
      const { violations } = await page.evaluate(() => window.axe.run(document));
      const serious = violations.filter((v) => ["serious", "critical"].includes(v.impact));
      assert.deepEqual(serious.map((v) => `${v.id}: ${v.nodes[0].target}`), []);
      assert.deepEqual(faults, []);
      await close();
    });
  }

  test("sorts the sites, and leads to a site's page and to a host's", async () => {
    const { page, faults, close } = await open({});
    assert.deepEqual(await column(page, 0), ["north", "south", "other"]);
    const sorted = [...(await column(page, 0))].sort();
    await page.click("#sites-table th:first-child button");
    const ascending = await column(page, 0);
    if (ascending[0] !== sorted[0]) await page.click("#sites-table th:first-child button");
    assert.deepEqual(await column(page, 0), sorted);

    await page.click('#sites-table a:text-is("south")');
    await page.waitForURL("**/fleet-6-sites/south.html");
    assert.match(await page.title(), /2 hosts at south/);
    await page.goBack();
    const link = page.locator("#hosts-overview a").first();
    const host = await link.textContent();
    await link.click();
    await page.waitForFunction((name) => document.querySelector("#host article h2")?.textContent === name, host);
    assert.deepEqual(faults, []);
    await close();
  });

  test("does not grow with the hosts", () => {
    const [few, many] = [6, 60].map((hosts) => statSync(pageOf(hosts)).size);
    const site = statSync(join(folder, "fleet-60-sites", "north.html")).size;
    // Tables of hosts have at most a hundred rows.
    assert.ok(many - few < 200_000, `${few} bytes of 6 hosts, ${many} bytes of 60 hosts`);
    assert.ok(site > few, "the pages of hosts are in the pages of sites");
  });
});
