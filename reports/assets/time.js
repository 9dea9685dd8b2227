// Axes of time in the report's zone. Plotly supports UTC only; here an axis counts milliseconds, with ticks at the hours,
// midnights and months of the zone: a day has 23, 24 or 25 hours, and a repeated hour has two ticks.
"use strict";
const zoneTime = (() => {
  const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
  const STEPS = [
    ...[1, 5, 15, 30].map((n) => n * SECOND), ...[1, 5, 15, 30].map((n) => n * MINUTE),
    ...[1, 2, 3, 6, 12].map((n) => n * HOUR), ...[1, 2, 7, 14].map((n) => n * DAY),
  ];
  const MONTHS = [1, 3, 6, 12];
  const PX_A_TICK = 72;
  // The first of January 1970 was a Thursday; weeks begin on Mondays.
  const MONDAY = 4 * DAY;
  const WEEKDAY = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
  const MONTH = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December"];
  // Periods with one offset from UTC; each lasts until the next begins.
  const stretches = (JSON.parse(document.getElementById("zone")?.textContent ?? "null")?.offsets ?? [])
    .map(({ from_ms, offset_ms }, i, all) => ({ from: i ? from_ms : -Infinity, until: all[i + 1]?.from_ms ?? Infinity, offset: offset_ms }));
  if (!stretches.length) stretches.push({ from: -Infinity, until: Infinity, offset: 0 });

  const stretchAt = (ms) => stretches.find((s) => ms < s.until);
  const changesIn = (from, to) => stretches.some((s) => s.from > from && s.from <= to);
  /** The zone's local time as a Date; only the Date's UTC parts are valid. */
  const wall = (ms) => new Date(ms + stretchAt(ms).offset);
  const two = (n) => String(n).padStart(2, "0");

  function offsetName(ms) {
    const minutes = stretchAt(ms).offset / MINUTE;
    const size = Math.abs(minutes);
    return `UTC${minutes < 0 ? "−" : "+"}${two(Math.floor(size / 60))}:${two(Math.round(size % 60))}`;
  }
  const day = (at) => `${WEEKDAY[at.getUTCDay()]} ${at.getUTCDate()}`;
  const month = (at) => MONTH[at.getUTCMonth()];
  const time = (at, seconds) =>
    `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}${seconds ? `:${two(at.getUTCSeconds())}` : ""}`;

  /** `Sun 25 Oct, 02:30:00`; with the offset on days with a clock change, when an hour may occur twice. */
  function moment(ms) {
    const at = wall(ms);
    const text = `${day(at)} ${month(at).slice(0, 3)}, ${time(at, true)}`;
    return changesIn(ms - DAY, ms + DAY) ? `${text} (${offsetName(ms)})` : text;
  }

  /** Times of ticks from `from` to `to`: multiples of the step on the zone's clock. */
  function multiples(from, to, step) {
    const phase = step % (7 * DAY) === 0 ? MONDAY : 0;
    const ticks = [];
    for (const s of stretches) {
      const start = Math.max(from, s.from), end = Math.min(to, s.until);
      if (!(start <= end)) continue;
      // If a clock change skips midnight, the day begins at the first time after the change.
      if (step === DAY && start === s.from && wall(start).getUTCDate() !== wall(start - 1).getUTCDate()) ticks.push(start);
      const first = Math.ceil((start + s.offset - phase) / step) * step + phase - s.offset;
      for (let ms = first; ms <= end && ms < s.until; ms += step) if (ms !== ticks.at(-1)) ticks.push(ms);
    }
    return ticks;
  }

  function months(from, to, step) {
    const ticks = [];
    const start = wall(from);
    for (let m = Math.floor(start.getUTCMonth() / step) * step; ; m += step) {
      const local = Date.UTC(start.getUTCFullYear(), m);
      const ms = local - stretchAt(local - stretchAt(local).offset).offset;
      if (ms > to) return ticks;
      if (ms >= from) ticks.push(ms);
    }
  }

  /** Values and texts of an axis' ticks for a width. A text has its second line only where that line changes. */
  function ticks(from, to, width) {
    const most = Math.max(2, Math.floor(width / PX_A_TICK));
    const fits = (step) => (to - from) / step <= most;
    const step = STEPS.find(fits);
    const monthly = MONTHS.find((n) => fits(n * 30 * DAY)) ?? 12 * Math.ceil((to - from) / (365 * DAY) / most);
    const values = step ? multiples(from, to, step) : months(from, to, monthly);
    const said = (ms) => {
      const at = wall(ms);
      const date = `${day(at)} ${month(at).slice(0, 3)}`;
      return !step ? [month(at).slice(0, 3), String(at.getUTCFullYear())]
        : step >= DAY ? [day(at), `${month(at)} ${at.getUTCFullYear()}`]
        : [time(at, step < MINUTE), date];
    };
    // The first tick has no second line if the next tick's is different: there is no room for both.
    let above = values.length > 2 && said(values[0])[1] !== said(values[1])[1] ? said(values[0])[1] : undefined;
    const texts = values.map((ms) => {
      const [first, second] = said(ms);
      const lines = [first];
      if (second !== above) lines.push(second);
      above = second;
      // A repeated hour is labelled with its offset.
      if (stretches.some((s) => s.from === ms) && step < DAY) lines.push(offsetName(ms));
      return lines.join("<br>");
    });
    return { values, texts };
  }

  return { moment, ticks, changesIn };
})();
