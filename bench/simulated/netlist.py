#!/usr/bin/env python3
"""A netlist with random fan-in, for the workloads *vcs* (verilator) and *delay* (opensta).

netlist.py FOLDER --seed N --gates N --registers N [--inputs 64]

The circuit has primary inputs, registers and gates. Each input of a gate is a random net: mostly one of the newest, so
that paths become long, sometimes any earlier one. Each register stores a random gate's value. The same circuit is
written twice: `assigns.v` (expressions, for verilator) and `cells.v` (instances of the cells of `cells.lib`, for
opensta). Equal arguments give equal bytes.
"""

import argparse
import random
from dataclasses import dataclass
from pathlib import Path

# Kind of cell: its inputs, expression in Verilog, function in Liberty, delay in ns.
KINDS = {
    "INV": ("A", "~{A}", "!A", 0.03),
    "NAND2": ("AB", "~({A} & {B})", "!(A*B)", 0.05),
    "NOR2": ("AB", "~({A} | {B})", "!(A+B)", 0.06),
    "XOR2": ("AB", "{A} ^ {B}", "A^B", 0.09),
    "MUX2": ("ABS", "{S} ? {B} : {A}", "(A*!S)+(B*S)", 0.10),
    "AOI21": ("ABC", "~(({A} & {B}) | {C})", "!((A*B)+C)", 0.08),
}
# XOR and MUX outweigh, so that values go on changing.
WEIGHTS = {"INV": 1, "NAND2": 3, "NOR2": 2, "XOR2": 5, "MUX2": 3, "AOI21": 2}
NEWEST = 2000
ANY_SHARE = 0.4


@dataclass
class Netlist:
    """Nets are numbers: primary inputs first, then registers, then gates."""

    inputs: int
    registers: list[int]  # net that each register stores
    gates: list[tuple[str, list[int]]]  # kind and input nets

    @property
    def first_gate(self) -> int:
        return self.inputs + len(self.registers)


def made(seed: int, gates: int, registers: int, inputs: int) -> Netlist:
    dice = random.Random(seed)
    kinds, weights = list(WEIGHTS), list(WEIGHTS.values())
    first = inputs + registers
    nets = []
    for net in range(first, first + gates):
        kind = dice.choices(kinds, weights)[0]
        newest = max(0, net - NEWEST)
        sources = [dice.randrange(net) if dice.random() < ANY_SHARE else dice.randrange(newest, net) for _ in KINDS[kind][0]]
        nets.append((kind, sources))
    return Netlist(inputs, [dice.randrange(first, first + gates) for _ in range(registers)], nets)


def name(netlist: Netlist, net: int) -> str:
    if net < netlist.inputs:
        return f"in[{net}]"
    return f"r{net}" if net < netlist.first_gate else f"g{net}"


def ports(netlist: Netlist) -> list[str]:
    """Both forms' beginning. `out` is the parity of eight registers."""
    return [f"module circuit(input clk, input [{netlist.inputs - 1}:0] in, output [7:0] out);"]


def assigns(netlist: Netlist) -> str:
    """The circuit as expressions. Registers begin with alternating values."""
    lines = ports(netlist)
    first = netlist.inputs
    for register in range(len(netlist.registers)):
        lines.append(f"reg r{first + register} = {register & 1};")
    for number, (kind, sources) in enumerate(netlist.gates):
        inputs = {pin: name(netlist, net) for pin, net in zip(KINDS[kind][0], sources, strict=True)}
        lines.append(f"wire g{netlist.first_gate + number} = {KINDS[kind][1].format(**inputs)};")
    lines.append("always @(posedge clk) begin")
    lines += [f"r{first + register} <= {name(netlist, net)};" for register, net in enumerate(netlist.registers)]
    lines += ["end", *(f"assign out[{bit}] = r{first + bit};" for bit in range(8)), "endmodule"]
    return "\n".join(lines) + "\n"


def cells(netlist: Netlist) -> str:
    """The circuit as instances of cells."""
    lines = ports(netlist)
    first, last = netlist.inputs, netlist.first_gate + len(netlist.gates)
    lines += [f"wire {name(netlist, net)};" for net in range(first, last)]
    for register, net in enumerate(netlist.registers):
        lines.append(f"DFF f{register}(.CK(clk), .D({name(netlist, net)}), .Q(r{first + register}));")
    for number, (kind, sources) in enumerate(netlist.gates):
        pins = "".join(f".{pin}({name(netlist, net)}), " for pin, net in zip(KINDS[kind][0], sources, strict=True))
        lines.append(f"{kind} u{number}({pins}.Y(g{netlist.first_gate + number}));")
    lines += [*(f"assign out[{bit}] = r{first + bit};" for bit in range(8)), "endmodule"]
    return "\n".join(lines) + "\n"


def table(group: str, delay_ns: float, slope: float) -> str:
    """Table of 3 input transitions by 3 loads."""
    rows = ", ".join('"' + ", ".join(f"{delay_ns * (1 + slope * i + 2 * slope * j):.4f}" for j in range(3)) + '"' for i in range(3))
    return f"{group}(by_load) {{ values({rows}); }}"


def liberty() -> str:
    lines = [
        "library(small) {",
        "delay_model : table_lookup; time_unit : \"1ns\"; voltage_unit : \"1V\"; current_unit : \"1mA\";",
        "capacitive_load_unit(1, pf); pulling_resistance_unit : \"1kohm\"; leakage_power_unit : \"1nW\";",
        "input_threshold_pct_rise : 50; input_threshold_pct_fall : 50; output_threshold_pct_rise : 50;",
        "output_threshold_pct_fall : 50; slew_lower_threshold_pct_rise : 20; slew_upper_threshold_pct_rise : 80;",
        "slew_lower_threshold_pct_fall : 20; slew_upper_threshold_pct_fall : 80; nom_voltage : 1.0; nom_temperature : 25;",
        "lu_table_template(by_load) { variable_1 : input_net_transition; variable_2 : total_output_net_capacitance;",
        'index_1("0.01, 0.1, 0.5"); index_2("0.001, 0.01, 0.1"); }',
        "lu_table_template(by_slew) { variable_1 : related_pin_transition; variable_2 : constrained_pin_transition;",
        'index_1("0.01, 0.5"); index_2("0.01, 0.5"); }',
    ]
    for kind, (pins, _, function, delay) in KINDS.items():
        arcs = "".join(timing(pin, delay * (1 + 0.1 * number)) for number, pin in enumerate(pins))
        lines.append(f"cell({kind}) {{ area : {len(pins)};")
        lines += [f"pin({pin}) {{ direction : input; capacitance : 0.002; }}" for pin in pins]
        lines.append(f'pin(Y) {{ direction : output; function : "{function}"; max_capacitance : 0.2; {arcs} }} }}')
    constraint = '(by_slew) { values("0.02, 0.04", "0.03, 0.05"); }'
    holds = "".join(
        f"timing() {{ related_pin : \"CK\"; timing_type : {kind}_rising; rise_constraint{constraint} fall_constraint{constraint} }}"
        for kind in ("setup", "hold")
    )
    lines += [
        'cell(DFF) { area : 6; ff(IQ, IQN) { clocked_on : "CK"; next_state : "D"; }',
        "pin(CK) { direction : input; clock : true; capacitance : 0.002; }",
        f"pin(D) {{ direction : input; capacitance : 0.002; {holds} }}",
        f'pin(Q) {{ direction : output; function : "IQ"; max_capacitance : 0.2; {timing("CK", 0.12, "timing_type : rising_edge;")} }} }}',
        "}",
    ]
    return "\n".join(lines) + "\n"


def timing(pin: str, delay_ns: float, more: str = "") -> str:
    """Arc from an input to the output."""
    tables = " ".join(table(group, delay_ns, 0.2) for group in ("cell_rise", "cell_fall", "rise_transition", "fall_transition"))
    return f'timing() {{ related_pin : "{pin}"; {more} {tables} }} '


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--gates", type=int, required=True)
    parser.add_argument("--registers", type=int, required=True)
    parser.add_argument("--inputs", type=int, default=64)
    args = parser.parse_args()
    netlist = made(args.seed, args.gates, args.registers, args.inputs)
    args.folder.mkdir(parents=True, exist_ok=True)
    for file, text in (("assigns.v", assigns(netlist)), ("cells.v", cells(netlist)), ("cells.lib", liberty())):
        (args.folder / file).write_text(text)


if __name__ == "__main__":
    main()
