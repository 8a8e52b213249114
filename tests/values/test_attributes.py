"""`self.x`: over all methods that store it, over base classes, fields and properties."""

from __future__ import annotations

from tests.values.probe import described

DEVICE = "tensor on the device"
HOST = "tensor on the host pageable"


def test_stored_in_the_constructor_and_used_elsewhere() -> None:
    code = """
    class Runner:
        def step(self):
            probe(self.rows)

        def __init__(self):
            self.rows = torch.zeros(3, device="cuda")
    """
    assert described(code) == [DEVICE]


def test_stored_as_nothing_first() -> None:
    code = """
    class Runner:
        def __init__(self):
            self.rows = None

        def prepare(self):
            self.rows = torch.zeros(3, device="cuda")

        def step(self):
            probe(self.rows)
    """
    assert described(code) == [DEVICE]


def test_two_methods_disagree_about_the_device() -> None:
    code = """
    class Runner:
        def __init__(self):
            self.rows = torch.zeros(3)

        def prepare(self):
            self.rows = torch.zeros(3, device="cuda")

        def step(self):
            probe(self.rows)
    """
    assert described(code) == ["tensor of unknown device"]


def test_a_base_class_of_the_same_file() -> None:
    code = """
    class Base:
        def __init__(self):
            self.rows = torch.zeros(3, device="cuda")

        def pack(self):
            return self.rows.cpu()

    class Runner(Base):
        def step(self):
            probe(self.rows)
            probe(self.pack())
    """
    assert described(code) == [DEVICE, HOST]


def test_a_class_that_is_its_own_base_ends() -> None:
    code = """
    class One(Two):
        def step(self):
            probe(self.rows)

    class Two(One):
        pass
    """
    assert described(code) == ["unknown"]


def test_an_annotated_field() -> None:
    code = """
    class Runner:
        rows: np.ndarray

        def step(self):
            probe(self.rows)
    """
    assert described(code) == ["numpy array"]


def test_a_property() -> None:
    code = """
    class Runner:
        def __init__(self):
            self._rows = torch.zeros(3, device="cuda")

        @property
        def rows(self):
            return self._rows[1:]

        def step(self):
            probe(self.rows)
    """
    assert described(code) == [DEVICE]


def test_an_attribute_of_an_object_of_the_same_file() -> None:
    code = """
    class Table:
        def __init__(self):
            self.rows = torch.zeros(3, device="cuda")

    class Runner:
        def __init__(self):
            self.table = Table()

        def step(self):
            probe(self.table)
            probe(self.table.rows)

    def f():
        table = Table()
        probe(table.rows)
    """
    assert described(code) == ["object Table", DEVICE, DEVICE]


def test_a_store_in_this_function_wins() -> None:
    code = """
    class Runner:
        def __init__(self):
            self.rows = torch.zeros(3)

        def step(self):
            self.rows = self.rows.cuda()
            probe(self.rows)
    """
    assert described(code) == [DEVICE]


def test_a_layer_that_is_called_gives_a_tensor_where_its_input_lives() -> None:
    code = """
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(3)

        def forward(self, x):
            x = torch.zeros(3, device="cuda")
            probe(self.norm(x))
    """
    assert described(code) == [DEVICE]


def test_the_device_of_an_object() -> None:
    code = """
    class Runner:
        def step(self):
            probe(torch.zeros(3, device=self.device))
    """
    assert described(code) == [DEVICE]
