"use strict";
// Extras over a page that can be read without: the panel with a number's lineage, sorting, sliders, and choices.
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

  // Sliders: of several siblings, one is shown.
  const slide = (home, name, items) => {
    if (items.length < 2) return;
    const said = make("output", {});
    const range = make("input", { type: "range", min: 0, max: items.length - 1, value: 0, step: 1 });
    const show = () => {
      const at = Number(range.value);
      items.forEach((item, place) => { item.hidden = place !== at; });
      said.textContent = `${items[at].dataset.title} (${at + 1} of ${items.length})`;
      range.setAttribute("aria-valuetext", said.textContent);
    };
    range.setAttribute("aria-label", name);
    range.addEventListener("input", show);
    home.append(make("label", {}, said, range));
    show();
  };
  const SHOWN = 3; // methods that a board shows at first
  for (const board of all(".board")) {
    for (const method of all(".row.method", board)) {
      slide(method.querySelector(".who .slider"), `Variant of ${method.dataset.method}`, all(".stop", method));
      for (const lane of all(".lane", method)) {
        slide(lane.querySelector(".slider"), `Key: ${method.dataset.method}`, all(".strip", lane));
      }
    }
    const buttons = all(".chips button", board);
    const many = (button) => all(`.row.method[data-method="${button.dataset.method}"] .stop`, board).length;
    const first = [...buttons].sort((one, other) => many(other) - many(one)).slice(0, SHOWN);
    for (const button of buttons) {
      const row = board.querySelector(`.row.method[data-method="${button.dataset.method}"]`);
      const press = (on) => {
        button.setAttribute("aria-pressed", String(on));
        row.hidden = !on;
      };
      button.addEventListener("click", () => press(row.hidden));
      press(first.includes(button));
    }
  }

  // Trade-offs: one plot of those that there are; a method stands out under the pointer.
  const plots = all(".plot");
  const selects = all(".choose select");
  const choose = () => {
    for (const plot of plots) {
      plot.hidden = selects.some((select) => plot.dataset[select.dataset.axis] !== select.value);
    }
    if (selects.length) document.getElementById("no-plot").hidden = plots.some((plot) => !plot.hidden);
  };
  selects.forEach((select) => select.addEventListener("change", choose));
  choose();
  const tip = document.getElementById("tip");
  for (const plot of plots) {
    const light = (method) => {
      plot.classList.toggle("faded", Boolean(method));
      all("[data-method]", plot).forEach((item) => item.classList.toggle("lit", item.dataset.method === method));
    };
    for (const item of all(".series, .legend li", plot)) {
      for (const event of ["pointerenter", "focusin"]) item.addEventListener(event, () => light(item.dataset.method));
      for (const event of ["pointerleave", "focusout"]) item.addEventListener(event, () => light(""));
    }
    for (const point of all("a.number", plot)) {
      point.querySelector("title").remove(); // the tip says it, and at once
      const show = () => {
        const at = point.getBoundingClientRect();
        tip.textContent = point.dataset.says;
        tip.hidden = false;
        tip.style.left = `${Math.max(8, Math.min(at.left + 14, innerWidth - tip.offsetWidth - 8))}px`;
        tip.style.top = `${at.top > tip.offsetHeight + 12 ? at.top - tip.offsetHeight - 8 : at.bottom + 8}px`;
      };
      for (const event of ["pointerenter", "focus"]) point.addEventListener(event, show);
      for (const event of ["pointerleave", "blur"]) point.addEventListener(event, () => { tip.hidden = true; });
    }
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
