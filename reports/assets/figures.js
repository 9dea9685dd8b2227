// Draws the figures in the page's colours. This script makes no network requests, and Plotly may make none.
const figures = (() => {
  const CONFIG = {
    displaylogo: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
    plotlyServerURL: "",
    responsive: true,
    showEditInChartStudio: false,
    showSendToCloud: false,
  };
  const PRINT_WIDTH_PX = 680;
  const root = document.documentElement;
  const coarse = matchMedia("(pointer: coarse)").matches;

  const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();

  // A colour map has five colours, from the lowest value to the highest: `gain-1` to `gain-5`.
  function paintMap(trace) {
    trace.colorscale = [1, 2, 3, 4, 5].map((step) => [(step - 1) / 4, colour(`${trace.name}-${step}`)]);
    return trace;
  }

  function paintTrace(trace, times) {
    if (trace.type === "heatmap") return paintMap(trace);
    const ink = colour(trace.meta ?? trace.name); // bars have no `meta`
    if (times.length && trace.x?.length === 1) trace.x = times[trace.x[0]] ?? trace.x;
    if (trace.stackgroup || trace.fill) trace.fillcolor = ink;
    if (trace.line) trace.line.color = ink;
    trace.marker = { ...trace.marker, color: ink, line: { ...trace.marker?.line, color: ink } };
    return trace;
  }

  function paintLayout(layout) {
    const soft = colour("soft");
    const axis = { gridcolor: colour("grid"), linecolor: colour("rule"), tickcolor: colour("rule"), color: soft };
    for (const name of ["xaxis", "yaxis"]) {
      Object.assign(layout[name], axis, { title: { ...layout[name].title, font: { size: 12 }, standoff: 14 } });
    }
    for (const shape of layout.shapes || []) {
      if (shape.type === "line") shape.line.color = colour(shape.name);
      else shape.fillcolor = colour(shape.name);
    }
    for (const label of layout.annotations || []) label.font = { color: colour("threshold"), size: 12 };
    layout.font = { ...layout.font, family: colour("sans"), color: colour("ink") };
    layout.paper_bgcolor = layout.plot_bgcolor = "rgba(0,0,0,0)";
    layout.modebar = { bgcolor: colour("raised"), color: soft, activecolor: colour("ink") };
    layout.hoverlabel = { bgcolor: colour("raised"), bordercolor: colour("rule"), font: { color: colour("ink"), family: colour("sans") } };
    // On a touch screen, moving a finger over a figure scrolls the page.
    layout.dragmode = coarse ? false : "zoom";
    if (root.dataset.print !== undefined) layout.width = PRINT_WIDTH_PX;
    return layout;
  }

  /** First and last time on an axis of time; the first second of 1970 if the figure has no times. */
  function extent(traces, shapes, name) {
    let [from, to] = [Infinity, -Infinity];
    const take = (ms) => {
      if (typeof ms !== "number") return;
      if (ms < from) from = ms;
      if (ms > to) to = ms;
    };
    for (const trace of traces) if ((trace.xaxis ?? "x") === name) trace.x?.forEach(take);
    for (const shape of shapes ?? []) if ((shape.xref ?? "x") === name) { take(shape.x0); take(shape.x1); }
    if (to < from) return [0, 1000];
    return to > from ? [from, to] : [from - 1000, from + 1000];
  }

  /** Turns every axis of type `date` into one of ms whose ticks `retick` sets, and returns the axes' names. */
  function makeTimeAxes(traces, layout) {
    const names = Object.keys(layout).filter((key) => /^xaxis\d*$/.test(key) && layout[key].type === "date");
    for (const name of names) {
      const short = name.replace("axis", "");
      const axis = layout[name];
      // The title of a hover box is the time in ms, which `tellTime` formats in the report's zone.
      const range = axis.range ?? extent(traces, layout.shapes, short);
      const room = "\u2007".repeat(zoneTime.changesIn(...range) ? 20 : 7);
      Object.assign(axis, { type: "linear", tickmode: "array", tickangle: 0, range, unifiedhovertitle: { text: `%{x:.0f}${room}` } });
      for (const trace of traces) {
        if ((trace.xaxis ?? "x") === short && !trace.text && String(trace.hovertemplate).includes("%{text}")) {
          trace.text = trace.x.map((ms) => (typeof ms === "number" ? zoneTime.moment(ms) : ""));
        }
      }
    }
    return names;
  }

  function ticksOf(axis, width) {
    const { values, texts } = zoneTime.ticks(Math.min(...axis.range), Math.max(...axis.range), width);
    return { tickvals: values, ticktext: texts };
  }

  /** Sets new ticks after a zoom or a change of width. */
  function retick(plot) {
    const update = {};
    for (const name of plot.timeAxes) {
      const axis = plot.layout[name];
      const { tickvals, ticktext } = ticksOf(axis, plot.clientWidth);
      if (String(tickvals) !== String(axis.tickvals)) Object.assign(update, { [`${name}.tickvals`]: tickvals, [`${name}.ticktext`]: ticktext });
    }
    if (Object.keys(update).length) Plotly.relayout(plot, update);
  }

  function tellTime(plot) {
    const layer = plot.querySelector(".hoverlayer");
    if (!layer || layer.dataset.told) return;
    layer.dataset.told = "yes";
    new MutationObserver(() => {
      for (const title of layer.querySelectorAll(".legendtitletext")) {
        const ms = title.textContent.trim();
        if (/^-?\d{9,}$/.test(ms)) title.textContent = zoneTime.moment(Number(ms));
      }
    }).observe(layer, { childList: true, subtree: true, characterData: true });
  }

  function draw(figure) {
    const { times, data, layout } = JSON.parse(figure.querySelector("script").textContent);
    for (const run of times) for (let i = 1; i < run.length; i++) run[i] += run[i - 1];
    const traces = data.map((trace) => paintTrace(trace, times));
    const plot = figure.querySelector(".plot");
    const isNew = !plot.timeAxes;
    plot.timeAxes = makeTimeAxes(traces, layout);
    for (const name of plot.timeAxes) Object.assign(layout[name], ticksOf(layout[name], layout.width ?? (root.dataset.print !== undefined ? PRINT_WIDTH_PX : plot.clientWidth)));
    Plotly.react(plot, traces, paintLayout(layout), { ...CONFIG, displayModeBar: coarse ? false : "hover" });
    if (isNew && plot.timeAxes.length) plot.on("plotly_relayout", () => retick(plot));
    tellTime(plot);
    // A screen reader gets the group's label, and not the texts of the axes one by one.
    for (const svg of plot.querySelectorAll("svg.main-svg")) svg.setAttribute("aria-hidden", "true");
  }

  // Hidden figures have no width; they are drawn when they are shown.
  function drawIn(part) {
    for (const figure of part.querySelectorAll("figure")) {
      if (!figure.closest("[hidden]") && figure.querySelector("script")) draw(figure);
    }
  }

  /** Frees the figures of a removed part of the page. */
  function forget(part) {
    part.querySelectorAll(".plot").forEach((plot) => Plotly.purge(plot));
  }

  return { drawIn, forget };
})();
