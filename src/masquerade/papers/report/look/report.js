"use strict";
// Extras over a page that can be read without: the panel with a number's lineage, sorting, and a filter.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (name, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };

  // A number's lineage.
  const panel = document.getElementById("panel");
  const slot = (name) => panel.querySelector(`[data-slot="${name}"]`);
  const scale = document.querySelector(".contents .scale code").textContent;
  let opener = null;

  const close = () => {
    panel.hidden = true;
    opener?.setAttribute("aria-expanded", "false");
    opener?.focus({ preventScroll: true });
    opener = null;
  };
  const step = (title, path, md5) =>
    make("li", {}, make("b", { textContent: title }), make("ul", { className: "files" },
      make("li", {}, make("code", { className: "path", textContent: path }), make("code", { className: "md5", textContent: md5 }))));

  const open = (number) => {
    opener?.setAttribute("aria-expanded", "false");
    opener = number;
    opener.setAttribute("aria-expanded", "true");
    const { address, says, title, of, note = "", valueSaid } = number.dataset;
    const table = number.closest("table[data-item]"); // of numbers, or of claims
    slot("item").textContent = (table ? `${table.dataset.item} · ` : "") + of;
    slot("title").textContent = title;
    slot("value").textContent = valueSaid ?? (table ? number.textContent : "");
    slot("says").textContent = says;
    slot("note").textContent = note;
    slot("command").textContent = `masquerade lineage show ${address} --scale ${scale}`;
    const links = all(":scope > li", document.getElementById(number.getAttribute("href").slice(1)));
    slot("chain").replaceChildren(
      ...(table ? [step("table", table.dataset.file, table.dataset.md5)] : []), ...links.map((link) => link.cloneNode(true)));
    panel.hidden = false;
    panel.scrollTop = 0;
    panel.focus({ preventScroll: true });
  };
  document.addEventListener("click", (event) => {
    const number = event.target.closest("a.number");
    if (number) {
      event.preventDefault();
      open(number);
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !panel.hidden) close();
  });
  panel.querySelector(".close").addEventListener("click", close);
  panel.querySelector(".copy").addEventListener("click", async (event) => {
    const text = slot("command");
    try {
      await navigator.clipboard.writeText(text.textContent);
      event.target.textContent = "Copied";
    } catch { // a file from disk may not write to the clipboard: it is selected for the reader's own keys
      getSelection().selectAllChildren(text);
    }
    setTimeout(() => { event.target.textContent = "Copy"; }, 1500);
  });

  // Tables that can be sorted: by the measured number, by the name of the row, and back as printed.
  for (const table of all("table.numbers")) {
    const body = table.tBodies[0];
    const printed = [...body.rows];
    const heads = all("thead tr:last-child th", table);
    heads.forEach((head, place) => {
      const title = head.firstElementChild;
      const button = make("button", { type: "button", className: "sort", textContent: title.textContent });
      title.replaceWith(button);
      button.addEventListener("click", () => {
        const way = { ascending: "descending", descending: "none" }[head.getAttribute("aria-sort")] ?? "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        if (way !== "none") head.setAttribute("aria-sort", way);
        const value = (row) => (place ? parseFloat(row.cells[place].dataset.value ?? row.cells[place].textContent) : row.cells[0].textContent);
        const sign = way === "ascending" ? 1 : -1;
        const compare = (one, other) => {
          const [a, b] = [value(one), value(other)];
          if (!place) return sign * a.localeCompare(b);
          return Number.isNaN(a) - Number.isNaN(b) || sign * (a - b) || 0; // what has no number stays below
        };
        body.append(...(way === "none" ? printed : [...printed].sort(compare)));
      });
    });
  }

  // Claims by verdict.
  for (const button of all(".filter button")) {
    button.addEventListener("click", () => {
      all(".filter button").forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      for (const row of all("table.claims tbody tr")) {
        row.hidden = Boolean(button.dataset.verdict) && row.dataset.verdict !== button.dataset.verdict;
      }
    });
  }

  // Where the reader is.
  const links = new Map(all(".contents li a").map((link) => [link.getAttribute("href").slice(1), link]));
  const here = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      links.forEach((link) => link.removeAttribute("aria-current"));
      links.get(target.id).setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-10% 0px -80% 0px" });
  links.forEach((_, id) => here.observe(document.getElementById(id)));
})();
