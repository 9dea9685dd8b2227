// Opens a page of `gleaner curve predict` in Chromium, as readers do: node --test tests/browser
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
const PAGES = 24_000;
/** A program of 94 MiB with a knee at 60 %: faults at each hundredth of the footprint. */
const CURVE = {
  curve_version: 1, gleaner_version: "0.1.0", program: "sort <b>", native_cpu_s: 1.5, native_wall_s: 1.2, peak_bytes: 99_000_000,
  page_bytes: 4096, footprint_pages: PAGES, instructions_count: 2_700_000_000, references_count: 1_500_000_000, misses_of_bytes: null,
  faults: Array.from({ length: 100 }, (_, i) => {
    const reuse = i < 60 ? 60_000 - 700 * i : 18_000 - 460 * (i - 60);
    return { memory_pages: (i + 1) * (PAGES / 100), reuse_count: i === 99 ? 0 : Math.max(0, reuse), write_backs_count: i === 99 ? 0 : 9_000 - 50 * i };
  }),
  windows: [
    ...Array.from({ length: 150 }, (_, i) => ({ window_ms: 10, time_ms: 10 * i, pages: 800 + 300 * (i % 7) })),
    { window_ms: 1000, time_ms: 0, pages: 15_000 }, { window_ms: 1000, time_ms: 1000, pages: 9_000 },
    ...Array.from({ length: 150 }, (_, i) => ({ window_ms: null, time_ms: 10 * i, pages: Math.min(PAGES, 1000 + 180 * i) })),
  ],
  first_touch: [{ pages: 1, references_count: 5 }, { pages: PAGES, references_count: 1_500_000_000 }],
  recorder: { name: "qemu", processes_count: 1, threads_count: 1, has_code: false }, sampled_share: 1, cut: null,
};
/** Technologies that move pages; the curve has no cache misses. */
const LINES = 10;

describe("a page of a curve", () => {
  const folder = mkdtempSync(join(tmpdir(), "gleaner-curve-"));
  const address = pathToFileURL(join(folder, "sort.html")).href;
  let browser;
  before(async () => {
    mkdirSync(SCREENSHOTS, { recursive: true });
    writeFileSync(join(folder, "sort.curve"), JSON.stringify(CURVE));
    await promisify(execFile)(GLEANER, ["curve", "predict", "sort.curve", "--local", "50%", "--page", "sort.html"], { cwd: folder });
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
    test(`shows faults, working sets and slowdowns, and is well on a ${name} screen`, async () => {
      const context = await newContext(browser, { ...options, reducedMotion: "reduce" });
      const page = await context.newPage();
      const faults = [];
      const requests = [];
      page.on("console", (message) => faults.push(message.text()));
      page.on("pageerror", (error) => faults.push(String(error)));
      page.on("request", (request) => requests.push(request.url()));
      await page.goto(address);
      await page.screenshot({ path: join(SCREENSHOTS, `curve-${name}.png`), fullPage: true });

      assert.match(await page.textContent("#headline-title"), /lose with less local memory/);
      assert.match(await page.textContent(".lead"), /With half of its memory local, the program would take 1\.\d\d to \d+\.\d\d times as long/);
      const plots = await page.$$eval(".plot", (all) => all.map((plot) => ({
        lines: [...plot.querySelectorAll(".scatterlayer .js-line")].filter((line) => line.getAttribute("d")?.length > 5).length,
        traces: plot.data.length,
        texts: plot.data.flatMap((trace) => trace.hovertext ?? []),
        label: plot.getAttribute("aria-label"),
        logarithmic: plot.layout.yaxis.type === "log",
      })));
      assert.equal(plots.length, 3);
      const [rates, sets, slowdowns] = plots;
      assert.ok(rates.logarithmic && !sets.logarithmic);
      assert.deepEqual([rates.traces, rates.lines], [2, 2], "faults and write-backs");
      assert.deepEqual([sets.traces, sets.lines], [3, 3], "windows of 10 ms, of 1 s, and since the begin");
      assert.equal(slowdowns.traces, LINES + 1, "a line for each technology, and the paper's 2.0");
      assert.ok(slowdowns.lines >= 4, `${slowdowns.lines} lines`);
      assert.ok(rates.texts.every((text) => /^(faults|write-backs)<br>local memory .*iB<br>per CPU second/.test(text)), rates.texts[0]);
      assert.match(rates.label, /Faults and write-backs per CPU second.*\d/);

      assert.equal((await page.$$("#faults-table tbody tr")).length, 10);
      assert.equal((await page.$$("#slowdown-table tbody tr")).length, LINES);
      const half = await page.$eval("#faults-table tbody tr:nth-child(5)", (row) => [...row.cells].map((cell) => Number(cell.dataset.value)));
      assert.deepEqual(half.slice(0, 3), [PAGES / 2 * 4096, 0.5, 60_000 - 700 * 49]);
      assert.match(await page.textContent(".subject"), /sort <b>/, "words stay words");

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
