"""What a rank answers, without an engine."""

from multiprocessing import Pipe
from pathlib import Path
from threading import Thread

from reprod_align.errors import ReprodError
from reprod_align.pair.wire import Wire
from reprod_align.parallel import Mesh, rank


def test_a_file_that_is_missing_is_an_answer_and_the_end_is_quiet(tmp_path: Path) -> None:
    ours, theirs = Pipe()
    thread = Thread(target=rank.serve, args=(Wire(theirs), Mesh(1, 2), 0))
    thread.start()
    wire = Wire(ours)
    wire.send(("open", [str(tmp_path / "none.py"), None, ""], {}))
    assert isinstance(wire.receive(), ReprodError)
    wire.close()
    thread.join(5)
    assert not thread.is_alive()
