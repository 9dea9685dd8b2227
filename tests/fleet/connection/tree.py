"""An Ansible connection to a machine's file tree, in which commands run by chroot(8)."""

import shlex
import shutil
from pathlib import Path

from ansible.plugins.connection.local import Connection as Local

DOCUMENTATION = """
name: tree
short_description: Runs tasks in a file tree of this machine
description: Commands run below the root by chroot, files are copied.
options:
  root:
    description: The tree's root.
    required: true
    type: path
    vars: [{name: tree_root}]
  pipelining:
    description: Whether modules come by standard input.
    default: false
    type: boolean
    env: [{name: ANSIBLE_PIPELINING}]
    vars: [{name: ansible_pipelining}]
"""


class Connection(Local):
    """As `local`, but in another file tree."""

    transport = "tree"

    def exec_command(self, cmd, in_data=None, sudoable=True):
        inside = f"exec env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin SYSTEMD_OFFLINE=1 chroot {shlex.quote(self.get_option('root'))} /bin/sh -c {shlex.quote(cmd)}"
        return super().exec_command(inside, in_data=in_data, sudoable=sudoable)

    def _inside(self, path: str) -> Path:
        return Path(self.get_option("root"), path.lstrip("/"))

    def put_file(self, in_path, out_path):
        shutil.copyfile(in_path, self._inside(out_path))

    def fetch_file(self, in_path, out_path):
        shutil.copyfile(self._inside(in_path), out_path)
