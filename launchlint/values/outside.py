"""What lives in other files of the same run: fields, results and attributes, by their annotations, from the summaries.

No file is parsed for this. A class name is resolved through the imports of the asking file; where several unrelated classes
bear the name, or several classes disagree about an attribute, there is no answer.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator

from launchlint.hot.graph import GENERIC, Graph
from launchlint.hot.summary import ClassSummary
from launchlint.names import Names
from launchlint.values.annotations import ON_HOST, value_of_text
from launchlint.values.fields import beside_copy
from launchlint.values.value import NOTHING, TENSOR, Kind, Value

_MANY = 60  # an attribute that more classes have means nothing by its name alone
_SAME = 0.75  # the share of annotated definitions that must agree
_BASES = 8


class ProjectValues:
    """Answers for `values.evaluate.Outside` out of the summaries of a run."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._attributes: dict[str, Value] | None = None

    def attribute(self, class_name: str, attribute: str, names: Names) -> Value:
        """An annotated field, or what an annotated property returns, of a class of another file or of its bases."""
        for described in self._lineage(class_name, names):
            if attribute in described.annotations:
                return beside_copy(value_of_text(described.annotations[attribute]), attribute, described.annotations)
            if attribute in described.properties:
                return value_of_text(described.results.get(attribute, ""))
        return NOTHING

    def method(self, class_name: str, method: str, names: Names) -> Value:
        """What a method promises to return."""
        for described in self._lineage(class_name, names):
            if method in described.methods:
                return value_of_text(described.results.get(method, ""))
        return NOTHING

    def function(self, dotted_name: str) -> Value:
        """What a module-level function promises to return, looked up through re-exports."""
        module, _, name = dotted_name.rpartition(".")
        for _ in range(4):
            number = self.graph.by_module.get(module)
            if number is None:
                return NOTHING
            file = self.graph.files[number]
            if name in file.results:
                return value_of_text(file.results[name])
            target = file.imports.get(name)
            if target is None:
                return NOTHING
            module, _, name = target.rpartition(".")
        return NOTHING

    def constant(self, dotted_name: str) -> Value:
        """A constant of another module: its name is all that is known."""
        return NOTHING

    def any_attribute(self, attribute: str) -> Value:
        """What all classes of the run say about an attribute of this name, if they agree and are not too many."""
        if attribute in GENERIC:
            return NOTHING
        if self._attributes is None:
            self._attributes = self._agreements()
        return self._attributes.get(attribute, NOTHING)

    def _agreements(self) -> dict[str, Value]:
        said: dict[str, list[str]] = collections.defaultdict(list)
        for file in self.graph.files:
            for described in file.classes:
                for name, text in described.annotations.items():
                    said[name].append(text)
                for name in described.properties:
                    said[name].append(described.results.get(name, ""))
        return {name: _agreed(texts) for name, texts in said.items() if 0 < len(texts) <= _MANY}

    def _lineage(self, class_name: str, names: Names) -> Iterator[ClassSummary]:
        places = self.graph.classes.get(class_name, [])
        if len(places) > 1:
            module = names.targets.get(class_name, "").rpartition(".")[0]
            exact = [place for place in places if self.graph.files[place[0]].module == module]
            near = exact or [place for place in places if module and self.graph.files[place[0]].module.startswith(module)]
            places = near or (places if len(places) <= 2 else [])
        for place in places[:1]:
            for count, ancestor in enumerate(self.graph.ancestors(place)):
                if count >= _BASES:
                    return
                yield self.graph.class_at(ancestor)


def _agreed(texts: list[str]) -> Value:
    if "str" in texts:
        return NOTHING
    if all(text.endswith(ON_HOST) for text in texts):
        return value_of_text(texts[0])
    texts = [text for text in texts if not text.endswith(ON_HOST)]
    values = [value for text in texts if text and (value := value_of_text(text)).kind not in (Kind.UNKNOWN, Kind.OBJECT, Kind.NONE)]
    if not values or len(values) < _SAME * len(texts):
        return NOTHING
    kinds = {value.kind for value in values}
    if len(kinds) != 1:
        return NOTHING
    return (
        TENSOR.but(by_name=True)
        if values[0].kind is Kind.TENSOR
        else values[0]
        if len(values) == 1
        else Value(values[0].kind, by_name=True)
    )
