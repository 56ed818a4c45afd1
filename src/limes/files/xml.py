"""Small XML files, read without entities and external references."""

from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

# Deeper files are no models; each level would be a call of a reader.
MAX_DEPTH = 50


@dataclass
class Element:
    """An element: its name, attributes, text and children."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    text: str = ""
    children: list["Element"] = field(default_factory=list)

    def all(self, tag: str) -> list["Element"]:
        """Return the children of this name."""
        return [child for child in self.children if child.tag == tag]


def read_xml(data: bytes, name: str) -> Element:
    """Return the root of an XML file; one that declares a document type is refused.

    Entities are declared there, and expanding them could take all memory or read other files.

    Examples
    --------
    >>> read_xml(b"<a><b c='1'>text</b></a>", "a.xml").all("b")
    [Element(tag='b', attributes={'c': '1'}, text='text', children=[])]
    """
    root = Element("")
    open_elements = [root]
    pieces: list[list[str]] = [[]]

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(open_elements) > MAX_DEPTH:
            raise ValueError(f"{name}: expected at most {MAX_DEPTH} elements inside each other.")
        element = Element(tag, attributes)
        open_elements[-1].children.append(element)
        open_elements.append(element)
        pieces.append([])

    def end(tag: str) -> None:
        open_elements.pop().text = "".join(pieces.pop())

    def refuse(*values: object) -> NoReturn:
        raise ValueError(
            f"{name}: expected XML without a document type and entities, which could read other "
            "files: remove '<!DOCTYPE ...>'."
        )

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = lambda text: pieces[-1].append(text)
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{name}: expected XML, found an error: {reason}.") from None
    except (LookupError, UnicodeError):
        raise ValueError(f"{name}: expected XML in UTF-8, found another encoding.") from None
    return root.children[0]
