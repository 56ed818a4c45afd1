"""All peers, in the order of the tables."""

from collections.abc import Sequence

from limes.bench.peers.boosting import LIGHTGBM_PEER
from limes.bench.peers.borders import LIMES_PEER, PREDICTOR_PEER
from limes.bench.peers.intelex import INTELEX_PEERS
from limes.bench.peers.onnx import ONNX_PEER
from limes.bench.peers.peer import Peer
from limes.bench.peers.scikit_learn import SCIKIT_LEARN_PEERS, SVC_PEER

PEERS: tuple[Peer, ...] = (
    SVC_PEER,
    *INTELEX_PEERS,
    ONNX_PEER,
    *SCIKIT_LEARN_PEERS,
    LIGHTGBM_PEER,
    LIMES_PEER,
    PREDICTOR_PEER,
)


def choose_peers(names: Sequence[str] | None = None) -> list[Peer]:
    """Return the peers of some names or families, all for None.

    Parameters
    ----------
    names : sequence of str or None, default=None
        Such as "nystroem-500", or "nystroem" for all its sizes.

    Returns
    -------
    list of Peer
        In the order of the tables.

    Examples
    --------
    >>> [peer.name for peer in choose_peers(["limes", "mlp", "svc"])]
    ['svc', 'mlp-32', 'mlp-128', 'limes', 'limes-predictor']
    """
    if names is None:
        return list(PEERS)
    for name in names:
        if not any(_is_meant(peer, name) for peer in PEERS):
            raise ValueError(
                f"methods must be some of {[peer.name for peer in PEERS]}, got {name!r}."
            )
    return [peer for peer in PEERS if any(_is_meant(peer, name) for name in names)]


def _is_meant(peer: Peer, name: str) -> bool:
    """Tell whether a name is that of a peer or of its family."""
    return peer.name == name or peer.name.startswith(f"{name}-")
