// Refreshes the page in place, and applies links and the filter without reloading: typed text, scroll position and
// focus are preserved. Sends requests only to this collector.
(() => {
  "use strict";
  const INTERVAL_MS = 10_000;
  const PATIENCE_MS = 30_000;
  const PAUSE_IN_TYPING_MS = 250;
  const byId = (id) => document.getElementById(id);
  const form = byId("filter");
  let newest = 0; // of the requests: what was asked for earlier and comes later is not shown
  let typing;

  async function load(address) {
    const turn = ++newest;
    try {
      const answer = await fetch(address, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
      if (!answer.ok) throw new Error(`it answered ${answer.status}`);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (turn === newest) show(fresh);
    } catch {
      if (turn === newest) byId("lost").textContent = "The collector does not answer; this is how it was.";
    }
  }

  function show(fresh) {
    const focused = document.activeElement?.id;
    for (const part of document.querySelectorAll("[data-live]")) {
      const other = fresh.getElementById(part.id);
      // Unchanged elements are not replaced, so that the reader's position in them is preserved.
      if (other && other.innerHTML !== part.innerHTML) part.replaceChildren(...other.childNodes);
    }
    byId("reload").href = fresh.getElementById("reload").getAttribute("href");
    for (const [index, option] of [...byId("state").options].entries()) {
      option.textContent = fresh.getElementById("state").options[index].textContent;
    }
    byId("lost").textContent = "";
    if (focused && document.activeElement?.id !== focused) {
      (byId(focused) ?? byId("main")).focus({ preventScroll: true });
    }
  }

  function go(address) {
    clearTimeout(typing);
    history.pushState(null, "", address);
    readForm();
    return load(address);
  }

  /** Returns the URL for the form's values, without empty ones. */
  function asked() {
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value.trim() !== ""));
    return query.size ? `/?${query}` : "/";
  }

  function filter() {
    clearTimeout(typing);
    if (asked() === location.pathname + location.search) return;
    history.replaceState(null, "", asked());
    load(asked());
  }

  form.addEventListener("submit", (event) => { event.preventDefault(); filter(); });
  byId("state").addEventListener("change", filter);
  byId("q").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(filter, PAUSE_IN_TYPING_MS); });
  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a[data-here]");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    const isAfar = !link.closest("thead");
    await go(link.getAttribute("href"));
    if (isAfar) byId("hosts").scrollIntoView();
  });
  byId("reload").addEventListener("click", (event) => { event.preventDefault(); load(location.href); });
  addEventListener("popstate", () => { readForm(); load(location.href); });

  /** Sets the form's values from the URL. */
  function readForm() {
    const query = new URLSearchParams(location.search);
    byId("q").value = query.get("q") ?? "";
    byId("state").value = query.get("state") ?? "";
    byId("sort").value = query.get("sort") ?? "";
  }

  const isReading = () => !getSelection().isCollapsed; // what is selected would be lost
  const isWanted = () => !document.hidden && byId("refreshing").checked && !isReading();
  setInterval(() => isWanted() && load(location.href), INTERVAL_MS);
  document.addEventListener("visibilitychange", () => isWanted() && load(location.href));
  for (const part of document.querySelectorAll(".scripted")) part.hidden = false;
})();
