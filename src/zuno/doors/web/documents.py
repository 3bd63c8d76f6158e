"""A view's document as the page gets it: its words in their order. Pictures are the page's own, and most tables."""

from zuno.kernel.view import View
from zuno.present.document import Kind, Tone


class DocumentValue(View):
    text: str
    tone: Tone
    kind: Kind
    """`foreign`: not our words."""


class DocumentFact(View):
    label: str
    value: DocumentValue
    figure: bool
    """Whether the text is that of one number."""
    about: str
    """Source and age."""
    stale: bool


class DocumentColumn(View):
    name: str


class DocumentRow(View):
    cells: tuple[DocumentValue, ...]


class DocumentTable(View):
    columns: tuple[DocumentColumn, ...]
    rows: tuple[DocumentRow, ...]


class DocumentSection(View):
    title: str
    sentences: tuple[DocumentValue, ...]
    facts: tuple[DocumentFact, ...]
    tables: tuple[DocumentTable, ...]


class DocumentAct(View):
    label: str
    command: str
    """As it is typed in a terminal, without `zuno`."""


class DocumentView(View):
    headline: DocumentValue
    context: DocumentValue
    urgent: tuple[DocumentValue, ...]
    """What stands above every figure."""
    sections: tuple[DocumentSection, ...]
    notes: tuple[DocumentValue, ...]
    acts: tuple[DocumentAct, ...]
    as_of: str | None
