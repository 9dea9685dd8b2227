// Accessibility that mdBook's pages lack: makes the sidebar's label a button, and makes elements that scroll sideways
// scrollable with keys.
(() => {
  const toggle = document.getElementById("mdbook-sidebar-toggle");
  toggle.setAttribute("role", "button");
  toggle.tabIndex = 0;
  toggle.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      toggle.click();
    }
  });
  const focusable = () => {
    for (const box of document.querySelectorAll("main .table-wrapper, main pre, main pre > code")) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  focusable();
  addEventListener("load", focusable);
  addEventListener("resize", focusable);
})();
