"""Everything a user would pick instead, and limes: how each is trained, asked and weighed."""

from limes.bench.peers.catalogue import PEERS, choose_peers
from limes.bench.peers.peer import Peer

__all__ = ["PEERS", "Peer", "choose_peers"]
