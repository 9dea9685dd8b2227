// Opens a page of global memory by `gleaner simulate` in Chromium, as readers do: node --test tests/browser
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
const POLICIES = ["gms", "hash"];
const SHARES = [0.25, 1];
const SCENARIO = `
about = "Two policies beside owners"
system = "gms"
from = 2026-11-17T10:00:00Z
days = 0.5
[datasets]
lab = "lab"
[scenario]
counted_faults = 200
idle_nodes = 6
[scenario.recorded]
mode = "spare"
most_frames = 4000
[sweep]
policy = ["gms", "hash"]
recorded.lent_share = [0.25, 1.0]
`;

describe("a page of global memory", () => {
  const folder = mkdtempSync(join(tmpdir(), "gleaner-global-memory-"));
  const address = pathToFileURL(join(folder, "owners.html")).href;
  let browser;
  before(async () => {
    mkdirSync(SCREENSHOTS, { recursive: true });
    const gleaner = (...args) => promisify(execFile)(GLEANER, args, { cwd: folder });
    await gleaner("synth", "-o", "lab", "--hosts", "4", "--days", "2", "--start", "2026-11-16", "--interval", "5m");
    writeFileSync(join(folder, "owners.toml"), SCENARIO);
    await gleaner("simulate", "owners.toml", "--page", "owners.html");
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
    test(`shows a line for each policy, and is well on a ${name} screen`, async () => {
      const context = await newContext(browser, { ...options, reducedMotion: "reduce" });
      const page = await context.newPage();
      const faults = [];
      const requests = [];
      page.on("console", (message) => faults.push(message.text()));
      page.on("pageerror", (error) => faults.push(String(error)));
      page.on("request", (request) => requests.push(request.url()));
      await page.goto(address);
      await page.screenshot({ path: join(SCREENSHOTS, `global-memory-${name}.png`), fullPage: true });

      assert.match(await page.textContent("#headline-title"), /memory of other nodes gain/);
      assert.match(await page.textContent(".lead"), /At 100\.0 % \(share of the quota\), speedup: gms \d+\.\d\d; hash \d+\.\d\d\./);
      const plots = await page.$$eval(".plot", (all) => all.map((plot) => ({
        traces: plot.data.map((trace) => trace.x.length),
        texts: plot.data.flatMap((trace) => trace.hovertext ?? []),
        label: plot.getAttribute("aria-label"),
      })));
      assert.ok(plots.length >= 4, `${plots.length} figures: speedup, source reads, network, epochs, perhaps owners`);
      for (const plot of plots) {
        assert.deepEqual(plot.traces, POLICIES.map(() => SHARES.length), "a line for each policy, a point for each share");
        assert.ok(plot.texts.every((text) => /^(gms|hash)<br>share of the quota/.test(text)), plot.texts[0]);
      }
      assert.match(plots[0].label, /Speedup of the programs.*\d/);

      const rows = await page.$$eval("#speedup-table tbody tr", (all) => all.map((row) => [...row.cells].map((cell) => cell.dataset.value)));
      assert.equal(rows.length, POLICIES.length * SHARES.length);
      for (const [, share, speedup, low, high] of rows) {
        assert.ok(SHARES.includes(Number(share)));
        assert.ok(Number(low) <= Number(speedup) && Number(speedup) <= Number(high), "one seed");
      }
      assert.equal((await page.$$("#source-reads-table tbody tr")).length, rows.length, "a table beside each figure");

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
