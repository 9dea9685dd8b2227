// Checks packaging/grafana/gleaner.json against Grafana's schema, as its Foundation SDK publishes it for TypeScript:
// node --test tests/grafana. Its queries are tested in tests/readers/test_grafana.py.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const DASHBOARD = join(HERE, "../../packaging/grafana/gleaner.json");
const SDK = "@grafana/grafana-foundation-sdk";
/** Panel types, with the schema's names of their parts. */
const KINDS = {
  stat: { Options: "stat.Options", FieldConfig: "undefined" },
  table: { Options: "table.Options", FieldConfig: "table.FieldConfig" },
  timeseries: { Options: "timeseries.Options", FieldConfig: "timeseries.FieldConfig" },
};
const COLUMNS = 24;

const read = () => JSON.parse(readFileSync(DASHBOARD, "utf8"));
const panels = (dashboard) => dashboard.panels.filter((panel) => panel.type !== "row");

/** A module that compiles only if every part of the dashboard conforms to the schema, and has no other parts. */
function source(dashboard) {
  const modules = ["dashboard", "prometheus", "stat", "table", "timeseries"];
  const lines = modules.map((name) => `import type * as ${name} from "${SDK}/${name}";`);
  // The schema's types, with enumerations replaced by their texts, and without the builders' methods.
  lines.push(`type Plain<T> = 0 extends 1 & T ? any
    : T extends string ? \`\${T}\`
    : T extends number | boolean | null | undefined ? T
    : T extends (infer U)[] ? Plain<U>[]
    : { [K in keyof T as T[K] extends (...a: never) => unknown ? never : K]: Plain<T[K]> };`);
  // Targets depend on the data source: they are checked against Prometheus' schema below.
  lines.push(`type Panel = Omit<Plain<dashboard.Panel>, "targets"> & { targets: object[] };`);
  lines.push(`type Row = Omit<Plain<dashboard.RowPanel>, "panels"> & { panels: Panel[] };`);
  lines.push(`type Whole = Omit<Plain<dashboard.Dashboard>, "panels"> & { panels: (Panel | Row)[] };`);
  const hold = (value, type) => lines.push(`(${JSON.stringify(value)}) satisfies ${type};`);
  hold(dashboard, "Whole");
  for (const panel of panels(dashboard)) {
    const kind = KINDS[panel.type];
    assert.ok(kind, `${panel.title}: this test knows no panels of kind ${panel.type}`);
    hold(panel.options, `Plain<${kind.Options}>`);
    if (panel.fieldConfig.defaults.custom) hold(panel.fieldConfig.defaults.custom, `Plain<${kind.FieldConfig}>`);
    for (const target of panel.targets) hold(target, "Plain<prometheus.Dataquery>");
  }
  for (const variable of dashboard.templating.list) hold(variable, "Plain<dashboard.VariableModel>");
  return lines.join("\n");
}

/** TypeScript's error messages for the module. */
function checked(dashboard) {
  const parent = join(HERE, "node_modules/.checked");
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(parent, "dashboard-"));
  try {
    const file = join(folder, "dashboard.mts");
    writeFileSync(file, source(dashboard));
    const flags = ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", "--types", ""];
    const tsc = spawnSync(join(HERE, "node_modules/.bin/tsc"), [...flags, file], { encoding: "utf8" });
    assert.equal(tsc.error, undefined);
    return { status: tsc.status, said: tsc.stdout + tsc.stderr };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("the dashboard is as Grafana's schema has it", () => {
  const { status, said } = checked(read());
  assert.equal(status, 0, said.slice(0, 4000));
});

for (const [what, change] of Object.entries({
  "a key that the schema does not know": (d) => (d.refreshes = "1m"),
  "a word that is none of an enumeration's": (d) => (panels(d)[0].fieldConfig.defaults.color.mode = "rainbow"),
  "an option of a panel that there is not": (d) => (panels(d)[0].options.grafMode = "none"),
  "a value of a panel's option that there is not": (d) => (panels(d).at(-2).options.legend.placement = "left"),
  "a line style that there is not": (d) => (panels(d).at(-2).fieldConfig.defaults.custom.drawStyle = "curve"),
  "a query without an expression": (d) => delete panels(d)[0].targets[0].expr,
  "a variable that is not refreshed as any is": (d) => (d.templating.list[1].refresh = 7),
})) {
  test(`the check finds ${what}`, () => {
    const dashboard = read();
    change(dashboard);
    assert.notEqual(checked(dashboard).status, 0);
  });
}

test("panels have ids of their own, say what they show, and lie beside each other", () => {
  const dashboard = read();
  const ids = dashboard.panels.map((panel) => panel.id);
  assert.equal(new Set(ids).size, ids.length);
  const taken = new Map();
  for (const { title, gridPos } of dashboard.panels) {
    assert.ok(gridPos.x + gridPos.w <= COLUMNS, title);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        assert.equal(taken.get(`${x} ${y}`), undefined, `${title} lies on another`);
        taken.set(`${x} ${y}`, title);
      }
    }
  }
  for (const panel of panels(dashboard)) {
    assert.ok(panel.description.length > 10, `${panel.title} is not explained`);
    const refs = panel.targets.map((target) => target.refId);
    assert.equal(new Set(refs).size, refs.length, panel.title);
    for (const target of panel.targets) assert.equal(target.datasource.uid, "${datasource}", panel.title);
  }
});
