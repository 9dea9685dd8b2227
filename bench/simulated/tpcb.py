#!/usr/bin/env python3
"""The script of the workload *db*: TPC-B's tables and transactions for sqlite3.

tpcb.py FILE --seed N --branches N --accounts N --transactions N

TPC-B (revision 2.0, clauses 1.2 and 3.2): a transaction adds a random amount to a random account, teller and branch, and writes a row of history. Each branch has 10
tellers; the account's branch is the teller's in 85 of 100 transactions. The standard's 100,000 accounts a branch are scaled (--accounts counts those of all branches). Rows
have 100 bytes, those of history 50. Equal arguments give equal bytes. sqlite3 runs the script in memory, and it ends with the sums of the balances, which must be equal.
"""

import argparse
import random
from pathlib import Path

TELLERS = 10
HOME_SHARE = 0.85
MOST_AMOUNT = 999_999
TABLES = """
create table branches(bid integer primary key, bbalance integer, filler text);
create table tellers(tid integer primary key, bid integer, tbalance integer, filler text);
create table accounts(aid integer primary key, bid integer, abalance integer, filler text);
create table history(tid integer, bid integer, aid integer, delta integer, mtime integer, filler text);
"""


def filled(table: str, count: int, columns: str) -> str:
    numbers = f"with recursive n(x) as (select 0 union all select x + 1 from n where x + 1 < {count})"
    return f"insert into {table} {numbers} select x, {columns} from n;\n"


def script(seed: int, branches: int, accounts: int, transactions: int) -> str:
    dice = random.Random(seed)
    share = accounts // branches
    lines = [
        TABLES,
        filled("branches", branches, f"0, '{'branch':>88}'"),
        filled("tellers", branches * TELLERS, f"x / {TELLERS}, 0, '{'teller':>84}'"),
        filled("accounts", share * branches, f"x / {share}, 0, '{'account':>84}'"),
    ]
    for number in range(transactions):
        teller = dice.randrange(branches * TELLERS)
        branch = home = teller // TELLERS
        if branches > 1 and dice.random() >= HOME_SHARE:
            home = (branch + dice.randrange(1, branches)) % branches
        account, amount = home * share + dice.randrange(share), dice.randint(-MOST_AMOUNT, MOST_AMOUNT)
        lines.append(
            f"begin;update accounts set abalance=abalance+({amount}) where aid={account};"
            f"select abalance from accounts where aid={account};"
            f"update tellers set tbalance=tbalance+({amount}) where tid={teller};"
            f"update branches set bbalance=bbalance+({amount}) where bid={branch};"
            f"insert into history values({teller},{branch},{account},{amount},{number},'{'history':>22}');commit;\n"
        )
    sums = (("accounts", "abalance"), ("tellers", "tbalance"), ("branches", "bbalance"), ("history", "delta"))
    lines.append("select 'sums', " + ", ".join(f"(select sum({column}) from {table})" for table, column in sums) + ";\n")
    return "".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    for name in ("seed", "branches", "accounts", "transactions"):
        parser.add_argument(f"--{name}", type=int, required=True)
    args = parser.parse_args()
    if args.branches < 1 or args.accounts < args.branches or args.transactions < 0:
        parser.error("at least one branch, and one account a branch")
    args.file.write_text(script(args.seed, args.branches, args.accounts, args.transactions))


if __name__ == "__main__":
    main()
