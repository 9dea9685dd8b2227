// The browser of all tests of pages: Debian's Chromium, without its own traffic.
import { chromium } from "playwright-core";

const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];
/** Timeout of each step on a page: a busy machine takes longer than Playwright's 30 s to open a report of a week. */
const TIMEOUT_MS = 120_000;

export const DESKTOP = { width: 1280, height: 900 };
export const PHONE = { width: 390, height: 844 };

export const launch = () => chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS });

/** A new context of the browser with Playwright's options, light and at a desktop's size by default. */
export async function newContext(browser, options) {
  const context = await browser.newContext({ viewport: DESKTOP, colorScheme: "light", ...options });
  context.setDefaultTimeout(TIMEOUT_MS);
  return context;
}
