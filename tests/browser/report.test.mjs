// Opens each report named in GLEANER_REPORTS (paths, colon-separated) in Chromium, as a reader does:
//   GLEANER_REPORTS=out/demo.html node --test tests/browser
// and the reports of days with clock changes named in GLEANER_CLOCK_REPORTS.
// Screenshots go to out/screenshots/.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { basename, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import axe from "axe-core";
import { PHONE, launch, newContext } from "./chromium.mjs";

const SCREENSHOTS = fileURLToPath(new URL("../../out/screenshots/", import.meta.url));

const named = (variable) => (process.env[variable] ?? "").split(":").filter(Boolean);
const reports = named("GLEANER_REPORTS");
const clocks = named("GLEANER_CLOCK_REPORTS");

test("there are reports to look at", () => {
  assert.notEqual(reports.length + clocks.length, 0, "name them in GLEANER_REPORTS, colon-separated");
});

for (const path of [...reports, ...clocks]) {
  const name = basename(path, ".html");
  const address = pathToFileURL(resolve(path)).href;

  describe(name, () => {
    let browser;
    before(async () => {
      mkdirSync(SCREENSHOTS, { recursive: true });
      browser = await launch();
    });
    after(() => browser?.close());

    /** The opened report, with its errors and its requests. */
    async function open(options, hash = "", script = undefined) {
      const context = await newContext(browser, { reducedMotion: "reduce", ...options });
      const page = await context.newPage();
      if (script) await page.addInitScript(script);
      const faults = [];
      const requests = [];
      page.on("console", (message) => ["error", "warning"].includes(message.type()) && faults.push(message.text()));
      page.on("pageerror", (error) => faults.push(String(error)));
      page.on("request", (request) => requests.push(request.url()));
      await page.goto(address + hash, { waitUntil: "load" });
      return { page, faults, requests, close: () => context.close() };
    }

    /** Addresses of the hosts' pages; none if there is only one host, whose page is open. */
    const hostPages = (page) => page.$$eval("script[data-page]", (all) => all.map((s) => s.dataset.page));

    /** Opens a host's page as a link does. */
    async function openHost(page, id) {
      await page.evaluate((hash) => { location.hash = hash; }, id);
      await page.waitForFunction((hash) => document.querySelector("#host article")?.id === hash, id);
    }

    const plots = (page) =>
      page.$$eval(".plot", (all) =>
        all.filter((plot) => !plot.closest("[hidden]")).map((plot) => ({
          id: plot.closest("figure").id,
          traces: plot.querySelectorAll("svg .trace, svg .heatmaplayer > *").length,
          expected: JSON.parse(plot.closest("figure").querySelector("script").textContent).data.filter((t) => (t.x ?? t.z ?? []).length).length,
          label: plot.getAttribute("aria-label"),
          sentence: plot.closest("figure").querySelector("figcaption p + p").textContent,
        })),
      );

    function wellDrawn(drawn) {
      for (const plot of drawn) {
        assert.equal(plot.traces, plot.expected, `${plot.id}: traces drawn`);
        assert.match(plot.sentence, /\d/, `${plot.id}: a sentence with numbers`);
        assert.ok(plot.label.includes(plot.sentence), `${plot.id}: the sentence is its label`);
      }
    }

    const asked = (requests) => requests.filter((r) => !r.startsWith("data:") && !r.startsWith("blob:")).map((r) => r.split("#")[0]);

    /** Opens every folded table. */
    const unfold = (page) => page.$$eval("details.fold", (all) => all.forEach((fold) => (fold.open = true)));

    const seriousFaults = async (page) => {
      await unfold(page);
      await page.evaluate(axe.source);
      const { violations } = await page.evaluate(() => window.axe.run(document));
      return violations
        .filter((v) => ["serious", "critical"].includes(v.impact))
        .map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.target} ${n.any[0]?.message ?? ""}`).join("; ")}`);
    };

    // Pages of days with clock changes get only this test: no other test depends on the clock.
    if (clocks.includes(path)) {
      test("draws a day on which clocks change with the hours that it had", async () => {
        const { page, close } = await open({ viewport: { width: 1400, height: 900 } });
        const [id] = await hostPages(page);
        if (id) await openHost(page, id);
        const around = await page.evaluate(async () => {
          const HOUR = 3_600_000;
          const { offsets } = JSON.parse(document.getElementById("zone").textContent);
          const plot = [...document.querySelectorAll(".plot")].find((p) => p.timeAxes?.includes("xaxis") && !p.closest("[hidden]"));
          if (!plot) return null;
          const [from, to] = plot.layout.xaxis.range;
          const at = offsets.findIndex((o, i) => i > 0 && o.from_ms > from && o.from_ms < to);
          if (at < 0) return null;
          const change = offsets[at].from_ms;
          await Plotly.relayout(plot, { "xaxis.range": [change - 6 * HOUR, change + 6 * HOUR] });
          const { tickvals, ticktext } = plot.layout.xaxis;
          const wall = (ms) => new Date(ms + offsets[ms < change ? at - 1 : at].offset_ms).getUTCHours();
          return {
            steps: tickvals.slice(1).map((ms, i) => (ms - tickvals[i]) / HOUR),
            hours: ticktext.map((text) => Number(text.slice(0, 2))),
            expected: tickvals.map(wall),
            told: ticktext[tickvals.indexOf(change)],
            jump: (offsets[at].offset_ms - offsets[at - 1].offset_ms) / HOUR,
            shown: [...plot.querySelectorAll(".xtick text")].map((t) => t.getAttribute("data-unformatted")),
          };
        });
        await close();
        assert.ok(around, "no change of clocks lies in the figure");
        assert.deepEqual(around.hours, around.expected);
        assert.ok(around.steps.every((hours) => hours === 1), `an hour is as long as the other: ${around.steps}`);
        assert.match(around.told, /UTC[+−]\d\d:\d\d/, "the change is told apart");
        const twice = around.hours.filter((hour, i) => hour === around.hours[i - 1]).length;
        assert.equal(twice, around.jump < 0 ? 1 : 0, `in autumn an hour comes twice: ${around.hours}`);
        assert.equal(around.shown.length, around.hours.length, "drawn as said");
      });
      return;
    }

    test("draws every figure, says nothing to the console and asks nothing of the network", async () => {
      const { page, faults, requests, close } = await open();
      const drawn = await plots(page);
      assert.equal(drawn.length, await page.$$eval("figure script[type='application/json']", (all) => all.length));
      wellDrawn(drawn);
      assert.deepEqual(faults, []);
      assert.deepEqual(asked(requests), [address]);
      await close();
    });

    test("opens hosts' pages one at a time, by address, name and neighbour", async () => {
      const { page, faults, requests, close } = await open();
      const title = await page.title();
      const ids = await hostPages(page);
      if (!ids.length) {
        assert.equal(await page.locator("article[id^='host-']:visible").count(), 1, "the only host's page stands open");
        await close();
        return;
      }
      // Opened from the table of hosts, with the keyboard.
      const link = page.locator(`#hosts a[href="#${ids[0]}"]`);
      await link.focus();
      const scrolled = await page.evaluate(() => scrollY);
      await page.keyboard.press("Enter");
      await page.waitForFunction(() => document.querySelector("#host article"));
      const name = await page.locator("#host article h2").textContent();
      assert.equal(await page.title(), `${name}: ${title}`);
      assert.ok(await page.evaluate(() => document.activeElement === document.querySelector("#host article h2")), "focus is on the heading");
      assert.ok(await page.locator("#report").isHidden());
      wellDrawn(await plots(page));
      // To the next host, and back with the search box.
      await page.locator("nav.hosts a", { hasText: "›" }).last().click();
      await page.waitForFunction((id) => document.querySelector("#host article")?.id === id, ids[1]);
      assert.equal(await page.locator("article[id^='host-']").count(), 1, "one host's page at a time");
      await page.locator("nav.hosts input").fill("no such name");
      await page.keyboard.press("Enter");
      assert.match(await page.locator("nav.hosts output").textContent(), /no host/);
      await page.locator("nav.hosts input").fill(name);
      await page.keyboard.press("Enter");
      await page.waitForFunction((id) => document.querySelector("#host article")?.id === id, ids[0]);
      // Back to the report, at the reader's position.
      await page.locator("nav.hosts a.back").click();
      await page.locator("#report").waitFor({ state: "visible" });
      assert.equal(await page.locator("#host").isHidden(), true);
      assert.equal(await page.title(), title);
      assert.ok(Math.abs((await page.evaluate(() => scrollY)) - scrolled) < 5, "the report is where it was left");
      assert.equal(await page.evaluate(() => document.activeElement.getAttribute("href")), `#${ids[0]}`);
      // A host address that does not exist.
      await page.evaluate(() => { location.hash = "host-nobody"; });
      await page.locator("#host h2", { hasText: "No such host" }).waitFor();
      assert.deepEqual(faults, []);
      assert.deepEqual(asked(requests), [address]);
      await close();
    });

    test("opens at a host's address, and says so where a browser cannot unpack it", async () => {
      const { page, close } = await open();
      const [id] = await hostPages(page);
      await close();
      if (!id) return;
      const direct = await open({}, `#${id}`);
      await direct.page.locator("#host article").waitFor();
      await direct.close();
      const old = await open({}, `#${id}`, () => { delete window.DecompressionStream; });
      await old.page.locator("#host", { hasText: "lacks DecompressionStream" }).waitFor();
      assert.deepEqual(old.faults, []);
      await old.close();
    });

    test("a long table is filtered by words, and tells how many rows it shows", async () => {
      const { page, close } = await open();
      const long = await page.$$eval("table", (all) => all.filter((t) => t.tBodies[0].rows.length > 15 && !t.closest("[hidden]")).length);
      assert.equal(await page.locator("#report .filter").count(), long);
      if (!long) return close();
      const filter = page.locator("#report .filter").first();
      const folded = filter.locator("xpath=ancestor::details[1]/summary");
      if (await folded.count()) await folded.click();
      const table = page.locator("#report .filter + .scroll table").first();
      const rows = await table.locator("tbody tr").count();
      const word = (await table.locator("tbody tr").last().locator("th, td").first().textContent()).trim().split(/\s/)[0];
      await filter.locator("input").fill(word.toUpperCase());
      const shown = await table.locator("tbody tr:visible").count();
      assert.ok(shown > 0 && shown <= rows, `${shown} of ${rows} rows have ${word}`);
      assert.match(await filter.locator("output[aria-live]").textContent(), new RegExp(`^${shown} of ${rows} rows`));
      await filter.locator("input").fill("nothing has this");
      assert.equal(await table.locator("tbody tr:visible").count(), 0);
      await filter.locator("input").fill("");
      assert.equal(await table.locator("tbody tr:visible").count(), rows);
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
      const steps = async () => {
        const levels = await page.$$eval("h1, h2, h3, h4, h5", (all) => all.filter((h) => !h.closest("[hidden]")).map((h) => Number(h.tagName[1])));
        levels.reduce((above, level) => {
          assert.ok(level <= above + 1, `heading level ${above} is followed by ${level}`);
          return level;
        }, 0);
      };
      await steps();
      const [id] = await hostPages(page);
      if (id) {
        await openHost(page, id);
        await steps();
      }
      await close();
    });

    for (const colorScheme of ["light", "dark"]) {
      test(`axe finds nothing serious, ${colorScheme}`, async () => {
        const { page, close } = await open({ colorScheme });
        assert.deepEqual(await seriousFaults(page), []);
        const [id] = await hostPages(page);
        if (id) {
          await openHost(page, id);
          assert.deepEqual(await seriousFaults(page), [], id);
        }
        await close();
      });
    }


    test("fits a phone", async () => {
      const { page, close } = await open({ viewport: PHONE, hasTouch: true, isMobile: true, deviceScaleFactor: 2 });
      const fits = async (what) => {
        const widths = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
        assert.ok(widths[0] <= PHONE.width, `${what}: ${widths[0]} px wide in ${PHONE.width}`);
      };
      await unfold(page);
      await fits("the report");
      await page.screenshot({ path: `${SCREENSHOTS}${name}-phone.png`, fullPage: true });
      const [id] = await hostPages(page);
      if (id) {
        await openHost(page, id);
        await fits(id);
        await page.screenshot({ path: `${SCREENSHOTS}${name}-host-phone.png`, fullPage: true });
      }
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

    test("prints on A4: nothing cut at the side, and of several hosts the one that is open", async () => {
      const { page, faults, close } = await open();
      const printed = async (what) => {
        await unfold(page);
        const pdf = await page.pdf({ format: "A4", preferCSSPageSize: true, path: `${SCREENSHOTS}${what}.pdf` });
        assert.ok(pdf.length > 20_000, `${what}.pdf is nearly empty`);
      };
      await printed(name);
      const onPaper = () => page.evaluate(() => {
        dispatchEvent(new Event("beforeprint"));
        const wide = [...document.querySelectorAll("figure, table, p")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1);
        const told = wide.map((e) => `${e.tagName} ${e.id}`);
        dispatchEvent(new Event("afterprint"));
        return told;
      });
      // A4 less its margins, at 96 px an inch.
      await page.setViewportSize({ width: 680, height: 1000 });
      await page.emulateMedia({ media: "print" });
      assert.deepEqual(await onPaper(), []);
      const [id] = await hostPages(page);
      if (id) {
        await openHost(page, id);
        assert.deepEqual(await onPaper(), [], id);
        await printed(`${name}-host`);
        assert.ok(await page.locator("#report").isHidden());
      }
      assert.deepEqual(faults, []);
      await close();
    });

    for (const colorScheme of ["light", "dark"]) {
      test(`picture, ${colorScheme}`, async () => {
        const { page, close } = await open({ colorScheme });
        const kind = colorScheme === "dark" ? "dark" : "desktop";
        const picture = async (what) => {
          const file = `${SCREENSHOTS}${what}-${kind}.png`;
          assert.ok((await page.screenshot({ path: file, fullPage: true })).length > 50_000, `${file} is nearly empty`);
        };
        await picture(name);
        const [id] = await hostPages(page);
        if (id) {
          await openHost(page, id);
          await picture(`${name}-host`);
        }
        await close();
      });
    }
  });
}
