// Hosts' pages. Each is compressed in this file until its address, `#host-…`, is opened; one page at a time takes the place
// of the report.
const hosts = (() => {
  const report = document.getElementById("report");
  const place = document.getElementById("host");
  const packed = [...document.querySelectorAll("script[data-page]")];
  const byPage = new Map(packed.map((script, index) => [script.dataset.page, index]));
  const title = document.title;
  // The reader's position in the report.
  let left = null;

  async function inflated(script) {
    const bytes = Uint8Array.from(atob(script.textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Response(stream).text();
  }

  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  const leadTo = (index, words) =>
    packed[index] ? element("a", { href: `#${packed[index].dataset.page}` }, words(packed[index].dataset.name)) : "";

  function search() {
    const names = element("datalist", { id: "host-names" }, ...packed.map((script) =>
      element("option", { value: script.dataset.name, label: script.dataset.told })));
    const box = element("input", { type: "search", list: "host-names", autocomplete: "off" });
    const told = element("output", { "aria-live": "polite" });
    const go = (event) => {
      event.preventDefault();
      const asked = box.value.trim().toLowerCase();
      if (!asked) return;
      const matches = packed.filter((s) => s.dataset.name.toLowerCase().includes(asked));
      const found = matches.find((s) => s.dataset.name.toLowerCase() === asked) ?? (matches.length === 1 ? matches[0] : null);
      if (found) location.hash = found.dataset.page;
      else told.textContent = matches.length ? `${matches.length} hosts have names that contain this` : "no host has a name that contains this";
    };
    const form = element("form", { role: "search" }, element("label", {}, "Go to host", box), names, told);
    form.addEventListener("submit", go);
    // Choosing from the list enters the whole name in one event.
    box.addEventListener("input", (event) => event.inputType === "insertReplacementText" || !event.inputType ? go(event) : (told.textContent = ""));
    return form;
  }

  const bar = (index) => element("nav", { class: "hosts", "aria-label": "Hosts" },
    // No element has this id: otherwise the browser would scroll to the element instead of the reader's position.
    element("a", { href: "#all", class: "back" }, "← The report"),
    leadTo(index - 1, (name) => `‹ ${name}`), leadTo(index + 1, (name) => `${name} ›`), search());

  /** Width and colour scheme that figures are drawn for. */
  const look = () => `${innerWidth} ${matchMedia("(prefers-color-scheme: dark)").matches}`;

  function close() {
    figures.forget(place);
    place.replaceChildren();
    place.hidden = true;
    report.hidden = false;
    document.title = title;
  }

  /** Shows a host's page, or a message in its place. */
  function show(index, content) {
    if (!report.hidden) left = { scroll: scrollY, focus: document.activeElement, look: look() };
    figures.forget(place);
    place.replaceChildren(bar(index), content);
    report.hidden = true;
    place.hidden = false;
    tables.prepare(place);
    figures.drawIn(place);
    scrollTo({ top: 0, behavior: "instant" });
    place.querySelector("h2").focus({ preventScroll: true });
  }

  async function open(index) {
    const script = packed[index];
    const content = element("div", {});
    try {
      content.innerHTML = await inflated(script);
    } catch (error) {
      const reason = typeof DecompressionStream === "undefined"
        ? "This browser cannot open the host’s page: it lacks DecompressionStream, which Chrome and Edge have since 103, Firefox since 113 and Safari since 16.4."
        : `This file seems to be damaged: the host’s page could not be unpacked (${error.message}).`;
      content.append(element("h2", { tabindex: "-1" }, script.dataset.name), element("p", {}, script.dataset.told),
        element("p", { class: "note" }, `${reason} The report’s tables show this host’s numbers, too.`));
    }
    if (location.hash.slice(1) !== script.dataset.page) return; // the reader opened another page meanwhile
    document.title = `${script.dataset.name}: ${title}`;
    show(index, content);
  }

  function backToReport(id) {
    if (report.hidden) {
      close();
      if (left?.look !== look()) figures.drawIn(report);
      if (left && (!id || id === "all")) {
        scrollTo({ top: left.scroll, behavior: "instant" });
        left.focus?.focus({ preventScroll: true });
        return;
      }
    }
    if (id) document.getElementById(id)?.scrollIntoView();
  }

  function follow() {
    const id = decodeURIComponent(location.hash.slice(1));
    if (byPage.has(id)) open(byPage.get(id));
    else if (id.startsWith("host-") && !document.getElementById(id)) {
      document.title = title;
      show(-2, element("div", {}, element("h2", { tabindex: "-1" }, "No such host"),
        element("p", {}, "This report has no host at that address. The host may be gone, or have a new name.")));
    } else if (report.hidden) backToReport(id);
  }

  function start() {
    addEventListener("hashchange", follow);
    follow();
  }
  return { start };
})();
