// Opens the collector's status page in Chromium, as operators of a fleet do: node --test tests/browser
// Starts the built collector (target/debug, or GLEANER_PROGRAMS) on loopback; screenshots go to out/screenshots/.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import axe from "axe-core";
import { PHONE, launch, newContext } from "./chromium.mjs";

const CHECKOUT = fileURLToPath(new URL("../../", import.meta.url));
const PROGRAMS = resolve(process.env.GLEANER_PROGRAMS ?? join(CHECKOUT, "target/debug"));
const SCREENSHOTS = join(CHECKOUT, "out/screenshots/");
const MANY_HOSTS = 10_000;
const REFRESH_MS = 10_000; // interval stated on the page
const PAGE_BYTES = 150_000;

const run = promisify(execFile);
const program = (name) => join(PROGRAMS, name);
/** Posts a batch of each of `count` hosts (collector/examples/hosts.rs). */
const postHosts = (url, count) => run(program("examples/hosts"), [url, String(count)]);

/** A collector for one test, ended with the test. */
class Collector {
  static async start(folder, more = "") {
    const self = new Collector();
    const config = join(folder, "collector.toml");
    writeFileSync(config, `data_folder = "${join(folder, "data")}"\nlocal_listen = "127.0.0.1:0"\nlocal_access = "all"\n${more}`);
    self.child = spawn(program("gleaner-collector"), ["run", "--config", config], { stdio: ["ignore", "ignore", "pipe"] });
    for await (const line of createInterface({ input: self.child.stderr })) {
      const found = line.match(/listening on (https?):\/\/(\S+)/);
      if (found) self[found[1]] = `${found[1]}://${found[2]}`;
      if (self.http) break; // the plain one is said last
    }
    assert.ok(self.http, "the collector listens");
    self.child.stderr.resume();
    return self;
  }

  async end() {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, "exit");
    this.child.kill("SIGTERM");
    await ended;
  }

  status = async () => (await fetch(`${this.http}/v1/status`)).json();
}

/** Posts to `url` with a certificate, and returns the status. */
function post(url, path, body, certificate) {
  return new Promise((done, failed) => {
    const sent = request(`${url}${path}`, { method: "POST", agent: false, ...certificate }, (answer) => {
      answer.resume().on("end", () => done(answer.statusCode));
    });
    sent.on("error", failed).end(body);
  });
}

let browser;
let folder;
before(async () => {
  mkdirSync(SCREENSHOTS, { recursive: true });
  folder = mkdtempSync(join(tmpdir(), "gleaner-status-"));
  browser = await launch();
});
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The opened page, with its errors and its requests to other hosts. */
async function open(url, { path = "/", clock = false, ...options } = {}) {
  const context = await newContext(browser, options);
  const page = await context.newPage();
  if (clock) await page.clock.install();
  const faults = [];
  const elsewhere = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("request", (asked) => new URL(asked.url()).origin !== url && !asked.url().startsWith("data:") && elsewhere.push(asked.url()));
  const answer = await page.goto(url + path, { waitUntil: "load" });
  const close = async () => {
    assert.deepEqual(faults, [], "nothing is said to the console");
    assert.deepEqual(elsewhere, [], "nothing is asked of anybody else");
    await context.close();
  };
  return { page, faults, answer, close };
}

const names = (page) => page.$$eval("#table tbody th", (all) => all.map((th) => th.firstChild.textContent.trim()));
const caption = (page) => page.locator("#found").textContent();
const shows = (page, text) => page.waitForFunction((t) => document.querySelector("#found").textContent === t, text);

async function allFaults(page) {
  const { violations } = await page.evaluate(async (source) => {
    // The page's policy forbids added scripts; the test's own script may run.
    if (!window.axe) (0, eval)(source);
    return window.axe.run(document);
  }, axe.source);
  return violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.target} ${n.any[0]?.message ?? ""}`).join("; ")}`);
}

describe("a collector of some hosts", () => {
  let collector;
  before(async () => {
    const pki = join(folder, "pki");
    await run(program("gleaner"), ["pki", "init", pki, "--name", "127.0.0.1"]);
    const here = join(folder, "some");
    mkdirSync(here);
    collector = await Collector.start(here, `listen = "127.0.0.1:0"\npki = "${pki}"\nseal_after = "1s"\n`);
    await postHosts(collector.http, 60);
    // The fifth host sends an invalid batch, with its own certificate.
    const { hosts } = await collector.status();
    const { host_id: id } = hosts.find((host) => host.host_name === "host-00005");
    await run(program("gleaner"), ["pki", "issue", "--pki", pki, "--host", id, "-o", join(folder, "host")]);
    const [ca, cert, key] = ["pki/authority.crt", "host.crt", "host.key"].map((name) => readFileSync(join(folder, name)));
    assert.equal(await post(collector.https, "/v1/batches", "no batch", { ca, cert, key }), 400);
  });
  after(() => collector?.end());

  test("shows every host, and takes no name for markup", async () => {
    const { page, answer, close } = await open(collector.http);
    assert.match(answer.headers()["content-security-policy"], /^default-src 'none'/);
    assert.match(await page.locator(".lead").textContent(), /^All 60 hosts are heard of/);
    const shown = await names(page);
    assert.equal(shown.length, 60);
    assert.ok(shown.includes('<b>otter</b> & "friends"'));
    assert.equal(await page.locator("#table b").count(), 0);
    await close();
  });

  test("shows first what is wrong: a rejected host with its reason and what to do", async () => {
    const { page, close } = await open(collector.http);
    const problem = page.locator(".problems > li").first();
    assert.match(await problem.textContent(), /1 host was rejected/);
    assert.match(await problem.textContent(), /host-00005 \([0-9a-f]{8}\): .*not a batch.*install it again/s);
    const first = page.locator("#table tbody tr").first();
    assert.match(await first.textContent(), /host-00005.*rejected/s);
    assert.match(await page.locator("#table tr.why").textContent(), /not a batch/);
    assert.match(await page.locator(".problems").textContent(), /3 hosts' clocks are wrong by more than a minute/);
    assert.match(await page.locator(".problems").textContent(), /agents are of 2 versions/);
    await close();
  });

  test("sorts by click and by keyboard", async () => {
    const { page, close } = await open(collector.http);
    const gaps = page.locator("#table th:has(#sort-gaps)");
    const column = async () => {
      const cells = await page.$$eval("#table tbody tr:not(.why)", (rows) => rows.map((row) => row.cells[5].firstChild.textContent));
      return cells.map(Number);
    };
    const sorted = (list) => [...list].sort((a, b) => a - b);
    await page.click("#sort-gaps");
    await page.waitForSelector("#table th[aria-sort=descending] #sort-gaps");
    assert.deepEqual(await column(), sorted(await column()).reverse());
    assert.ok((await column())[0] > 0);
    assert.equal(await page.evaluate(() => document.activeElement.id), "sort-gaps");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#table th[aria-sort=ascending] #sort-gaps");
    assert.deepEqual(await column(), sorted(await column()));
    assert.equal(await gaps.count(), 1);
    await page.goBack();
    await page.waitForSelector("#table th[aria-sort=descending] #sort-gaps");
    await close();
  });

  test("filters as one types, and by state", async () => {
    const { page, close } = await open(collector.http);
    await page.locator("#q").pressSequentially("host-0001");
    await shows(page, "10 of 60 hosts");
    assert.equal(new URL(page.url()).search, "?q=host-0001");
    await page.fill("#q", "");
    await shows(page, "60 hosts");
    await page.selectOption("#state", "clock_wrong");
    await shows(page, "3 of 60 hosts");
    assert.deepEqual(await names(page), ["host-00020", "host-00040", "host-00060"]);
    await page.fill("#q", "no such host");
    await shows(page, "0 of 60 hosts");
    assert.match(await page.locator("#table tbody").textContent(), /No host is like that/);
    await close();
  });

  test("refreshes itself, and keeps filter, focus and place", async () => {
    const { page, close } = await open(collector.http, { clock: true, path: "/?q=host-&sort=-clock" });
    await page.evaluate(() => { window.isSame = true; scrollTo(0, 700); });
    await page.locator("#sort-lag").evaluate((link) => link.focus({ preventScroll: true }));
    await page.locator("#table tbody th").first().evaluate((th) => { th.textContent = "out of date"; });
    const place = () => page.evaluate(() => [scrollY, document.activeElement.id, document.querySelector("#q").value, location.search]);
    const began = await place();
    assert.ok(began[0] > 0);
    await page.clock.fastForward(REFRESH_MS);
    await page.waitForFunction(() => !document.querySelector("#table").textContent.includes("out of date"));
    assert.deepEqual(await place(), began);
    assert.equal((await names(page)).length, 59);
    // Typed text stays too, and nothing changes while refreshing is off.
    await page.locator("#q").focus();
    await page.uncheck("#refreshing");
    await page.locator("#table tbody th").first().evaluate((th) => { th.textContent = "left alone"; });
    await page.clock.fastForward(3 * REFRESH_MS);
    assert.ok((await page.locator("#table").textContent()).includes("left alone"));
    await page.check("#refreshing");
    await page.locator("#q").fill("host-00007");
    await page.clock.fastForward(REFRESH_MS);
    await shows(page, "1 of 60 hosts");
    assert.equal(await page.locator("#q").inputValue(), "host-00007");
    assert.equal(await page.evaluate(() => window.isSame), true, "never left");
    await close();
  });

  test("works without script", async () => {
    const { page, close } = await open(collector.http, { javaScriptEnabled: false });
    assert.equal(await page.locator("#refreshing").isVisible(), false);
    await page.fill("#q", "host-0002");
    await page.click("form button");
    assert.equal(await caption(page), "10 of 60 hosts");
    await page.click("#sort-name");
    await page.click("#sort-name");
    assert.equal((await names(page))[0], "host-00029");
    await page.click("#reload");
    assert.equal((await names(page))[0], "host-00029");
    await close();
  });

  test("the first tab stop leads to the status", async () => {
    const { page, close } = await open(collector.http);
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
    test(`axe finds nothing, ${colorScheme}`, async () => {
      const { page, close } = await open(collector.http, { colorScheme, bypassCSP: true });
      assert.deepEqual(await allFaults(page), []);
      const file = `${SCREENSHOTS}status-${colorScheme === "dark" ? "dark" : "desktop"}.png`;
      const picture = await page.screenshot({ path: file, fullPage: true });
      assert.ok(picture.length > 50_000, `${file} is nearly empty`);
      await close();
    });
  }

  test("fits a phone", async () => {
    const { page, close } = await open(collector.http, { viewport: PHONE, hasTouch: true, isMobile: true, deviceScaleFactor: 2, bypassCSP: true });
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= PHONE.width, `${width} px wide in ${PHONE.width}`);
    assert.deepEqual(await allFaults(page), []);
    await page.screenshot({ path: `${SCREENSHOTS}status-phone.png`, fullPage: true });
    await close();
  });

  test("prints in light colours, without what cannot be pressed", async () => {
    const { page, close } = await open(collector.http, { colorScheme: "dark" });
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--paper").trim()), "#ffffff");
    assert.equal(await page.locator("#filter").isVisible(), false);
    assert.equal(await page.locator("#table").isVisible(), true);
    await close();
  });
});

describe("a collector with two peers", () => {
  let collector;
  let peers;
  /** Waits until the collector's document about all collectors is as wanted, and returns it. */
  async function group(isWanted) {
    for (;;) {
      const found = await (await fetch(`${collector.http}/v1/collectors`)).json();
      if (isWanted(found)) return found;
      await new Promise((done) => setTimeout(done, 100));
    }
  }
  async function start(name, hosts, more = "") {
    const here = join(folder, name);
    mkdirSync(here);
    const one = await Collector.start(here, `name = "${name}"\n${more}`);
    await postHosts(one.http, hosts);
    return one;
  }
  before(async () => {
    peers = [await start("north", 20), await start("west", 30)];
    collector = await start("east", 10, `[peers]\nurls = ${JSON.stringify(peers.map((peer) => peer.http))}\n`);
    await group(({ totals }) => totals.answering_count === 3 && totals.hosts_count === 60);
  });
  after(() => Promise.all([collector, ...(peers ?? [])].map((one) => one?.end())));

  test("shows all collectors with their sums, and links to the pages of the others", async () => {
    const { page, close } = await open(collector.http, { bypassCSP: true });
    assert.equal(await page.locator("h1").textContent(), "Gleaner collector east");
    assert.match(await page.locator("#collectors-found").textContent(), /^3 collectors: 60 of 60 hosts heard of/);
    const rows = page.locator("#collectors tbody tr");
    assert.deepEqual((await rows.allTextContents()).map((text) => text.trim().split(/\s/)[0]), ["east", "north", "west"]);
    assert.match(await rows.nth(2).textContent(), /well.*30 of 30/s);
    assert.equal(await rows.nth(1).locator("a").getAttribute("href"), `${peers[0].http}/`);
    assert.match(await page.locator(".lead").textContent(), /^All 10 hosts/);
    assert.deepEqual(await allFaults(page), []);
    await close();
  });

  test("says first that a collector does not answer, with its address and since when", async () => {
    await peers[0].end();
    await group((found) => !found.is_well);
    const { page, close } = await open(collector.http, { bypassCSP: true });
    const problem = await page.locator(".problems > li").first().textContent();
    assert.match(problem, /^\s*Fault\s+Another collector of the dataset does not answer: north \(http:.*\): since 20.* UTC: /);
    assert.match(await page.locator("#collectors-found").textContent(), /^2 of 3 collectors answer: 40 of 40 hosts/);
    assert.match(await page.locator("#collectors tr.why").textContent(), /no answer since 20/);
    assert.deepEqual(await allFaults(page), []);
    await close();
  });
});

describe("a collector of no hosts", () => {
  test("says how to add one; says that it is gone when it is", async () => {
    const here = join(folder, "none");
    mkdirSync(here);
    const collector = await Collector.start(here);
    try {
      const { page, faults, close } = await open(collector.http, { clock: true, bypassCSP: true });
      assert.equal(await page.locator(".lead").textContent(), "No host has sent anything yet.");
      assert.match(await page.locator("#problems").textContent(), /gleaner-agent enroll/);
      assert.deepEqual(await allFaults(page), []);
      await page.screenshot({ path: `${SCREENSHOTS}status-empty.png`, fullPage: true });
      await collector.end();
      await page.clock.fastForward(REFRESH_MS);
      await page.waitForFunction(() => /does not answer/.test(document.querySelector("#lost").textContent));
      assert.equal(await page.locator(".lead").textContent(), "No host has sent anything yet.");
      assert.equal(faults.splice(0).filter((fault) => !fault.includes("ERR_CONNECTION_REFUSED")).length, 0);
      await close();
    } finally {
      await collector.end();
    }
  });
});

describe(`a collector of ${MANY_HOSTS} hosts`, () => {
  let collector;
  before(async () => {
    const here = join(folder, "many");
    mkdirSync(here);
    collector = await Collector.start(here);
    await postHosts(collector.http, MANY_HOSTS);
  });
  after(() => collector?.end());

  test("is paged by the server, and small", async () => {
    const { page, answer, close } = await open(collector.http);
    const bytes = (await answer.body()).length;
    assert.ok(bytes < PAGE_BYTES, `${bytes} bytes`);
    assert.equal(await page.locator("#table tbody tr").count(), 200);
    assert.equal(await caption(page), "10,000 hosts, 1 to 200");
    const elements = await page.evaluate(() => document.querySelectorAll("*").length);
    assert.ok(elements < 5_000, `${elements} elements`);
    await page.screenshot({ path: `${SCREENSHOTS}status-many.png` });
    await close();
  });

  test("every page can be reached, and any host found", async () => {
    const { page, close } = await open(collector.http);
    await page.click("#sort-name");
    await page.waitForSelector("#table th[aria-sort=ascending] #sort-name");
    await page.click("#next");
    await shows(page, "10,000 hosts, 201 to 400");
    await page.click("#page-50");
    await shows(page, "10,000 hosts, 9,801 to 10,000");
    assert.equal((await names(page)).at(-1), "host-10000");
    assert.equal(await page.locator("#pages a[aria-current]").textContent(), "50");
    // A filter starts at its first page.
    await page.fill("#q", "host-07777");
    await shows(page, "1 of 10,000 hosts");
    assert.deepEqual(await names(page), ["host-07777"]);
    await page.fill("#q", "");
    await page.click("#all-clocks_wrong");
    await shows(page, "10,000 hosts, 1 to 200");
    await page.waitForSelector("#table th[aria-sort=descending] #sort-clock");
    assert.ok((await names(page)).every((name) => Number(name.slice(5)) % 20 === 0));
    await close();
  });
});
