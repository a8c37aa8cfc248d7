// Draws the charts of report.html, sorts its tables, and switches between light and dark. Runs once, at the end of the
// page. Expressions of charts go through an interpreter (`ast`), since the page's policy forbids `eval`.
"use strict";
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const incumbent = document.body.dataset.incumbent;
  const root = document.documentElement;

  // Themes: what the system prefers, until the button is pressed. It names the theme that it turns to.
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  let theme = null;
  const setTheme = () => {
    const dark = theme === null ? system.matches : theme === "dark";
    root.dataset.theme = dark ? "dark" : "light";
    button.textContent = dark ? "Light" : "Dark";
    return draw();
  };
  button.addEventListener("click", () => {
    theme = root.dataset.theme === "dark" ? "light" : "dark";
    setTheme();
  });
  system.addEventListener("change", setTheme);

  // Charts.
  const choice = (name) => document.querySelector(`select[data-choice="${name}"]`)?.value;
  const coloured = (spec) => {
    const style = getComputedStyle(root);
    return JSON.parse(
      JSON.stringify(spec).replace(/"@(\w+)"/g, (_, name) => JSON.stringify(style.getPropertyValue(`--${name}`).trim())),
    );
  };
  const config = () => {
    const style = getComputedStyle(root);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const font = getComputedStyle(document.body).fontFamily;
    return {
      font,
      background: "transparent",
      view: { stroke: colour("line") },
      axis: { gridColor: colour("line"), domainColor: colour("quiet"), tickColor: colour("quiet"), labelLimit: 260,
        labelColor: colour("ink"), titleColor: colour("ink"), titleFontWeight: "normal" },
      legend: { labelColor: colour("ink"), titleColor: colour("ink"), titleFontWeight: "normal",
        // Those of sizes are black without it.
        symbolBaseFillColor: colour("soft"), symbolBaseStrokeColor: colour("soft") },
      header: { labelColor: colour("ink"), labelFontSize: 12 },
      text: { color: colour("ink") },
    };
  };
  const cluster = (chart) => choice("cluster") ?? Object.keys(chart.rows)[0];
  const shown = (chart, of) => {
    const policies = [incumbent, choice("policy")].filter((name) => name in chart.values[of]);
    return [...new Set(policies)];
  };
  const matrixRows = (chart) => {
    const of = cluster(chart), names = chart.rows[of], columns = chart.columns[of], width = chart.widths[of], rows = [];
    const losses = chart.losses[of] ?? [];
    const isKnown = (number, start, end) => losses.some(([row, at]) => row === number && at >= start && at <= end);
    shown(chart, of).forEach((policy, order) => {
      chart.values[of][policy].forEach((line, number) => {
        line.forEach((value, column) => {
          if (value === null) return;
          const row = { policy, order, y: names[number], x: columns[column], value: value / chart.scale };
          if (width) row.x2 = row.x + width;
          row.comes = chart.has_lives && column > 0 && line[column - 1] === null;
          row.leaves = chart.has_lives && line[column + 1] === null && !isKnown(number, row.x, row.x2 + width);
          rows.push(row);
        });
      });
      for (const [number, at] of losses) rows.push({ policy, order, y: names[number], x: at, x2: at, leaves: true });
    });
    return rows;
  };
  const valuesOf = (chart) =>
    chart.values
      ? matrixRows(chart)
      : chart.rows.map((row) => Object.fromEntries(chart.fields.map((field, place) => [field, row[place]])));
  const drawOne = async (chart) => {
    const place = document.getElementById(chart.id).firstElementChild;
    const spec = { ...coloured(chart.spec), datasets: { rows: valuesOf(chart) } };
    await vegaEmbed(place, spec, {
      mode: "vega-lite", renderer: "svg", ast: true, actions: false, defaultStyle: false, tooltip: false, config: config(),
      // It warns of scales without data: brokers that neither come nor leave have no marks.
      logLevel: vega.Error,
    });
    // The element around it is an image with a text; the parts of this one would be read out one by one.
    for (const name of ["role", "aria-roledescription", "aria-label"]) place.removeAttribute(name);
    place.setAttribute("aria-hidden", "true");
  };
  // One drawing after the other; the page says when none is left.
  let turn = Promise.resolve(), waiting = 0;
  const draw = (which = charts) => {
    waiting += 1;
    root.dataset.charts = "drawing";
    turn = turn.then(async () => {
      for (const chart of which) await drawOne(chart);
      waiting -= 1;
      if (!waiting) root.dataset.charts = "drawn";
    });
    return turn;
  };

  // One choice of candidate and cluster for all charts that have one.
  for (const select of document.querySelectorAll("select[data-choice]")) {
    select.addEventListener("change", () => {
      for (const other of document.querySelectorAll(`select[data-choice="${select.dataset.choice}"]`)) other.value = select.value;
      draw(charts.filter((chart) => chart.values));
      document.querySelectorAll("details.numbers[open]").forEach(fillNumbers);
    });
  }

  // One of several tables at a time.
  for (const select of document.querySelectorAll("select[data-show]")) {
    const of = select.dataset.show;
    const show = () => document.querySelectorAll(`[data-${of}]`).forEach((place) => { place.hidden = place.dataset[of] !== select.value; });
    select.addEventListener("change", show);
    show();
  }

  // Numbers of a chart over time or of a matrix, made from its data when they are asked for.
  const element = (name, text, attributes = {}) => {
    const made = document.createElement(name);
    if (text !== null) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const columnName = (column, isTime) => (isTime ? new Date(column).toISOString().slice(0, 16).replace("T", " ") : column);
  const fillNumbers = (details) => {
    const chart = charts.find((chart) => chart.id === details.dataset.chart), of = cluster(chart);
    details.querySelectorAll(".scroll").forEach((old) => old.remove());
    for (const policy of shown(chart, of)) {
      const caption = `${chart.value_name}, ${policy}, cluster ${of}`;
      const around = element("div", null, { class: "scroll", tabindex: "0", role: "region", "aria-label": caption });
      const table = element("table", null, { class: "sortable" });
      const head = table.createTHead().insertRow();
      head.append(element("th", chart.row_name, { scope: "col" }));
      const isTime = chart.widths[of] !== undefined;
      for (const column of chart.columns[of]) head.append(element("th", columnName(column, isTime), { scope: "col", class: "n" }));
      const body = table.createTBody();
      chart.values[of][policy].forEach((line, number) => {
        const row = body.insertRow();
        row.append(element("th", chart.rows[of][number], { scope: "row" }));
        for (const value of line) row.append(element("td", value === null ? "–" : String(value / chart.scale), { class: "n" }));
      });
      table.prepend(element("caption", caption));
      around.append(table);
      details.append(around);
      makeSortable(table);
    }
  };
  for (const details of document.querySelectorAll("details.numbers")) {
    details.addEventListener("toggle", () => details.open && fillNumbers(details));
  }

  // Tables: a button in each head sorts by its column, first one way, then the other; what is no number comes last.
  const numberOf = (text) => parseFloat(text.replace(/^[±+]|,/g, "").replace("−", "-"));
  const textOf = (row, column) => row.cells[column].firstChild?.textContent.trim() ?? "";
  const compare = (column, isNumeric) => (a, b) => {
    const [left, right] = [textOf(a, column), textOf(b, column)];
    return isNumeric ? numberOf(left) - numberOf(right) : left.localeCompare(right, "en", { numeric: true });
  };
  const sortBy = (table, head, column) => {
    const body = table.tBodies[0], rows = [...body.rows];
    const isDown = head.getAttribute("aria-sort") === "ascending";
    const isBlank = (row) => ["", "–"].includes(textOf(row, column));
    const full = rows.filter((row) => !isBlank(row)), blank = rows.filter(isBlank);
    const isNumeric = head.classList.contains("n") && full.every((row) => !Number.isNaN(numberOf(textOf(row, column))));
    full.sort(compare(column, isNumeric));
    body.append(...(isDown ? full.reverse() : full), ...blank);
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
  };
  const makeSortable = (table) => {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const sorter = element("button", head.textContent, { type: "button" });
      sorter.addEventListener("click", () => sortBy(table, head, column));
      head.replaceChildren(sorter);
    });
  };
  document.querySelectorAll("table.sortable").forEach(makeSortable);

  // Paper is white.
  addEventListener("beforeprint", () => { root.dataset.theme = "light"; });
  addEventListener("afterprint", setTheme);

  setTheme();
})();
