// Opens a page of `gleaner simulate` in Chromium, as readers do: node --test tests/browser
// The built gleaner (target/debug, or GLEANER_PROGRAMS) makes it; screenshots go to out/screenshots/.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
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
const DATASETS = ["A", "B"];
const SCENARIO = `
about = "Two programs, five placements, two modes"
programs = ["lu", "hotcold"]
days = 0.25
[datasets]
A = "A"
B = "B"
[scenario]
reference_runs = 1
[sweep]
remote.placement = ["random", "spread", "stick", "epoch-weights", "longest-available"]
recruitment.mode = ["paper", "gentle"]
`;
const CASES = 20;

describe("a page of simulations", () => {
  const folder = mkdtempSync(join(tmpdir(), "gleaner-simulate-"));
  const address = pathToFileURL(join(folder, "short.html")).href;
  let browser;
  before(async () => {
    mkdirSync(SCREENSHOTS, { recursive: true });
    const gleaner = (...args) => promisify(execFile)(GLEANER, args, { cwd: folder });
    for (const [seed, name] of DATASETS.entries()) {
      await gleaner("synth", "-o", name, "--hosts", "3", "--days", "1", "--start", "2026-11-16", "--interval", "15m", "--seed", `${seed + 1}`);
    }
    writeFileSync(join(folder, "short.toml"), SCENARIO);
    await gleaner("simulate", "short.toml", "--page", "short.html");
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true });
  });

  for (const [name, options] of Object.entries({
    desktop: { viewport: { width: 1280, height: 900 }, colorScheme: "light" },
    dark: { viewport: { width: 1280, height: 900 }, colorScheme: "dark" },
    phone: { viewport: { width: 390, height: 844 }, colorScheme: "light", hasTouch: true },
  })) {
    test(`shows benefit against cost, and is well on a ${name} screen`, async () => {
      const context = await newContext(browser, { ...options, reducedMotion: "reduce" });
      const page = await context.newPage();
      const faults = [];
      const requests = [];
      page.on("console", (message) => faults.push(message.text()));
      page.on("pageerror", (error) => faults.push(String(error)));
      page.on("request", (request) => requests.push(request.url()));
      await page.goto(address);
      await page.screenshot({ path: join(SCREENSHOTS, `simulate-${name}.png`), fullPage: true });

      const plots = await page.$$eval(".plot", (all) => all.map((plot) => ({
        marks: plot.querySelectorAll(".point").length,
        texts: plot.data.flatMap((trace) => trace.hovertext),
        label: plot.getAttribute("aria-label"),
      })));
      assert.equal(plots.length, 2 * DATASETS.length, "reclaims and memory context of each dataset");
      for (const plot of plots) {
        assert.ok(plot.marks > 0 && plot.marks === plot.texts.length, `${plot.marks} marks, ${plot.texts.length} texts`);
        assert.ok(plot.texts.every((text) => /program (lu|hotcold)<br>.*speedup [\d.]+/.test(text)), plot.texts[0]);
        assert.match(plot.label, /share of gain.*\d/);
      }
      assert.equal(plots[0].marks, CASES, "a mark for each policy");

      const rows = await page.$$eval("#rows-1 tbody tr", (all) => all.length);
      assert.equal(rows, CASES);
      await page.locator("#rows-1 th button", { hasText: "share of gain" }).click();
      const shares = await page.$$eval("#rows-1 tbody tr", (all) => {
        const at = [...all[0].closest("table").tHead.rows[0].cells].findIndex((c) => c.textContent === "share of gain");
        return all.map((row) => Number(row.cells[at].dataset.value));
      });
      assert.deepEqual(shares, [...shares].sort((a, b) => b - a), "the largest first");

      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${wide} px wider than the screen`);
      await page.evaluate(axe.source);
      const { violations } = await page.evaluate(() => window.axe.run(document));
      assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes[0].target} ${v.nodes[0].any[0]?.message ?? ""}`), []);
      assert.deepEqual(faults, []);
      assert.deepEqual(requests, [address], "nothing is asked of the network");
      await context.close();
    });
  }
});
