// Sorting of tables by a click on a column heading, and filtering by words.
const tables = (() => {
  function sortBy(table, header, index) {
    const ascending = header.getAttribute("aria-sort") === "descending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    const numeric = header.classList.contains("number");
    // The first click sorts numbers in descending and texts in alphabetical order.
    const up = header.dataset.sorted ? ascending : !numeric;
    header.dataset.sorted = "yes";
    header.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => {
      const cell = row.cells[index];
      return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
    };
    const compare = ([, x], [, y]) => {
      // Unknown values come last in both directions.
      if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
      const order = typeof x === "number" ? x - y : x.localeCompare(y);
      return up ? order : -order;
    };
    const body = table.tBodies[0];
    body.append(...[...body.rows].map((row) => [row, key(row)]).sort(compare).map(([row]) => row));
  }

  function makeSortable(table) {
    [...table.tHead.rows[0].cells].forEach((header, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = header.textContent;
      button.addEventListener("click", () => sortBy(table, header, index));
      header.replaceChildren(button);
    });
  }

  const plain = (text) => text.replaceAll("\u00a0", " ").toLowerCase();

  /** Adds a box above the table; a row stays visible if its cells contain all words. */
  function makeFilter(table) {
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "search";
    box.autocomplete = "off";
    const caption = document.createElement("span");
    caption.className = "unseen";
    caption.textContent = `: ${table.caption.textContent}`;
    label.append("Filter", caption, box);
    const told = document.createElement("output");
    told.setAttribute("aria-live", "polite");
    const place = document.createElement("div");
    place.className = "filter";
    place.append(label, told);
    table.closest(".scroll").before(place);
    box.addEventListener("input", () => {
      const words = plain(box.value).split(/\s+/).filter(Boolean);
      let found = 0;
      for (const row of table.tBodies[0].rows) {
        const text = plain([...row.cells].map((cell) => cell.textContent).join("\n"));
        row.hidden = !words.every((word) => text.includes(word));
        found += !row.hidden;
      }
      const all = table.tBodies[0].rows.length;
      told.textContent = words.length ? `${found} of ${all} rows${table.dataset.more ? " on this page" : ""}` : "";
    });
  }

  // A table larger than its container is a focusable region that the keyboard can scroll. Other tables are not
  // focusable, and their headings stay visible while the page is scrolled.
  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (!target.clientWidth) continue; // hidden: it comes back as it was
      const wide = target.scrollWidth > target.clientWidth;
      target.classList.toggle("wide", wide);
      const attributes = { role: "region", tabindex: "0", "aria-labelledby": target.querySelector("caption").id };
      for (const [name, value] of Object.entries(attributes)) {
        if (wide) target.setAttribute(name, value);
        else target.removeAttribute(name);
      }
    }
  });

  function prepare(part) {
    part.querySelectorAll(".scroll").forEach((place) => sizes.observe(place));
    part.querySelectorAll("table[data-sortable]").forEach(makeSortable);
    part.querySelectorAll("table[data-filter]").forEach(makeFilter);
  }

  return { prepare };
})();
