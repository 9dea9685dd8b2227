"""An assembler of RV32I: `Assembler` has a method an instruction (`add("t0", "a0", "a1")`), and labels."""

import struct

NAMES = "zero ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6".split()
REGISTERS = {name: number for number, name in enumerate(NAMES)}
# Functions (funct3, bit 30) of instructions by their opcode.
REGISTER = {"add": (0, 0), "sub": (0, 1), "sll": (1, 0), "slt": (2, 0), "sltu": (3, 0), "xor": (4, 0), "srl": (5, 0), "sra": (5, 1), "or": (6, 0), "and": (7, 0)}
IMMEDIATE = {"addi": 0, "slti": 2, "sltiu": 3, "xori": 4, "ori": 6, "andi": 7}
SHIFT = {"slli": (1, 0), "srli": (5, 0), "srai": (5, 1)}
LOAD = {"lb": 0, "lh": 1, "lw": 2, "lbu": 4, "lhu": 5}
STORE = {"sb": 0, "sh": 1, "sw": 2}
BRANCH = {"beq": 0, "bne": 1, "blt": 4, "bge": 5, "bltu": 6, "bgeu": 7}


def signed(value: int, width: int) -> int:
    """The bits of a signed number that must fit."""
    if not -(1 << width - 1) <= value < 1 << width - 1:
        raise ValueError(f"{value} does not fit into {width} bits")
    return value & (1 << width) - 1


class Assembler:
    def __init__(self) -> None:
        self.words: list[tuple] = []  # instruction's name and operands
        self.labels: dict[str, int] = {}

    def __getattr__(self, name: str):
        return lambda *operands: self.words.append((name.rstrip("_"), *operands))

    def label(self, name: str) -> None:
        if name in self.labels:
            raise ValueError(f"label {name} is there twice")
        self.labels[name] = len(self.words)

    def li(self, to: str, value: int) -> None:
        """Loads a constant, always by two instructions."""
        value &= 0xFFFFFFFF
        low = (value & 0xFFF) - (0x1000 if value & 0x800 else 0)
        self.lui(to, (value - low >> 12) & 0xFFFFF)
        self.addi(to, to, low)

    def program(self) -> bytes:
        return b"".join(struct.pack("<I", self.word(place, *operation)) for place, operation in enumerate(self.words))

    def word(self, place: int, name: str, *operands) -> int:
        number = [REGISTERS.get(operand, operand) for operand in operands]
        offset = lambda label: (self.labels[label] - place) * 4
        if name in REGISTER:
            function, alternate = REGISTER[name]
            return alternate << 30 | number[2] << 20 | number[1] << 15 | function << 12 | number[0] << 7 | 0x33
        if name in IMMEDIATE:
            return signed(number[2], 12) << 20 | number[1] << 15 | IMMEDIATE[name] << 12 | number[0] << 7 | 0x13
        if name in SHIFT:
            function, alternate = SHIFT[name]
            return alternate << 30 | number[2] << 20 | number[1] << 15 | function << 12 | number[0] << 7 | 0x13
        if name in LOAD:  # lw to, offset, base
            return signed(number[1], 12) << 20 | number[2] << 15 | LOAD[name] << 12 | number[0] << 7 | 0x03
        if name in STORE:  # sw value, offset, base
            bits = signed(number[1], 12)
            return bits >> 5 << 25 | number[0] << 20 | number[2] << 15 | STORE[name] << 12 | (bits & 31) << 7 | 0x23
        if name in BRANCH:
            bits = signed(offset(operands[2]), 13)
            high, low = bits >> 12 << 31 | (bits >> 5 & 63) << 25, (bits >> 1 & 15) << 8 | (bits >> 11 & 1) << 7
            return high | number[1] << 20 | number[0] << 15 | BRANCH[name] << 12 | low | 0x63
        if name in ("lui", "auipc"):
            return number[1] << 12 | number[0] << 7 | (0x37 if name == "lui" else 0x17)
        if name == "jal":
            bits = signed(offset(operands[1]), 21)
            return (bits >> 20 << 31 | (bits >> 1 & 1023) << 21 | (bits >> 11 & 1) << 20 | (bits >> 12 & 255) << 12) | number[0] << 7 | 0x6F
        if name == "jalr":
            return signed(number[2], 12) << 20 | number[1] << 15 | number[0] << 7 | 0x67
        if name == "ecall":
            return 0x73
        raise ValueError(f"unknown instruction {name}")
