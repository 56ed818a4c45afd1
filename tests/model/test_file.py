import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.svm import SVC

import limes
from limes import BorderMap, BordersClassifier
from limes.model import Model, load_model, save_model
from limes.model.affine import AffineMap
from limes.model.file import parse_model
from limes.model.file_layout import (
    PREAMBLE,
    array_bytes,
    describe_array,
    parse_container,
    read_array,
    write_container,
)
from limes.model.schemes import PairwiseScheme
from tests.export.cases import (
    CASES,
    binary,
    coupled,
    fitted,
    one_vs_rest,
    rows_like,
    votes,
    votes_scaled,
)

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "votes.limes"
    fitted(votes_scaled).save(path)
    return path


def change_header(data, change):
    """The same file with another header, its lengths and checksum made right."""
    _, _, n_header, _ = PREAMBLE.unpack(data[: PREAMBLE.size])
    header = json.loads(data[PREAMBLE.size : PREAMBLE.size + n_header])
    change(header)
    return with_header(data, json.dumps(header).encode())


def with_header(data, text):
    _, _, n_header, _ = PREAMBLE.unpack(data[: PREAMBLE.size])
    text += b" " * (-(PREAMBLE.size + len(text)) % 64)
    arrays = data[PREAMBLE.size + n_header : -32]
    size = PREAMBLE.size + len(text) + len(arrays) + 32
    return sealed(PREAMBLE.pack(data[:8], data[8], len(text), size) + text + arrays)


def sealed(data):
    return data + sha256(data).digest()


def candidate(**changed):
    """One candidate as a file has it."""
    sizes = {"n_borders": 5, "blend": 1, "cost": 10}
    measured = {"agreement": 0.5, "agreement_error": 0.1, "is_selected": True}
    return {"scheme": "shared", **sizes, **measured} | changed


def refusal(path, data):
    """The message with which bytes are refused, which is one line and names the file."""
    path.write_bytes(data)
    with pytest.raises(ValueError) as raised:
        limes.load(path)
    message = str(raised.value)
    assert message.startswith(f"{path}, byte ")
    assert "\n" not in message
    assert len(message) < 400 + len(str(path))
    return message


class TestRoundTrip:
    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
    def test_a_loaded_model_predicts_bit_for_bit(self, case, tmp_path):
        fast, rows = fitted(case), rows_like(fitted(case), 2000)
        fast.save(tmp_path / "m.limes")
        again = limes.load(tmp_path / "m.limes")
        for method in ("predict", "predict_proba", "decision_function"):
            assert_array_equal(getattr(again, method)(rows), getattr(fast, method)(rows))
        assert again.predict(rows).dtype == fast.predict(rows).dtype

    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
    def test_a_loaded_model_is_written_as_the_same_bytes(self, case, tmp_path):
        fitted(case).save(tmp_path / "one.limes")
        limes.load(tmp_path / "one.limes").save(tmp_path / "two.limes")
        assert (tmp_path / "one.limes").read_bytes() == (tmp_path / "two.limes").read_bytes()

    def test_what_the_fit_found_is_kept(self, saved):
        fast, again = fitted(votes_scaled), limes.load(saved)
        for name in ("agreement_", "agreement_error_", "cost_", "n_borders_", "placement_"):
            assert getattr(again, name) == getattr(fast, name)

    @pytest.mark.usefixtures("quick_fit")
    def test_what_the_fit_tried_is_kept(self, tmp_path, moons):
        fast = BordersClassifier(SVC(gamma=2), scheme="shared", fallback=False).fit(*moons)
        fast.save(tmp_path / "m.limes")
        assert len(fast.candidates_) > 1
        assert limes.load(tmp_path / "m.limes").candidates_ == fast.candidates_

    def test_a_candidate_without_a_skill_loss_is_read(self, tmp_path, saved):
        path = tmp_path / "m.limes"
        path.write_bytes(
            change_header(saved.read_bytes(), lambda h: h["info"].update(candidates=[candidate()]))
        )
        (again,) = limes.load(path).candidates_
        assert again.n_borders == 5
        assert np.isnan(again.skill_loss)
        limes.load(path).save(tmp_path / "again.limes")
        assert np.isnan(limes.load(tmp_path / "again.limes").candidates_[0].skill_loss)

    def test_parameters_are_kept_but_not_those_of_the_computer(self, saved):
        fast, again = fitted(votes_scaled), limes.load(saved)
        kept = again.get_params()
        assert kept["estimator"] is None
        assert {key: kept[key] for key in ("scheme", "n_borders", "random_state")} == {
            key: fast.get_params()[key] for key in ("scheme", "n_borders", "random_state")
        }
        clone(again)

    def test_an_agreement_that_is_not_known_stays_so(self, tmp_path):
        fast = BordersClassifier(SVC(), n_borders=1).fit([[0.0], [1.0]], [0, 1])
        assert np.isnan(fast.agreement_)
        fast.save(tmp_path / "m.limes")
        assert np.isnan(limes.load(tmp_path / "m.limes").agreement_)

    @pytest.mark.usefixtures("quick_fit")
    def test_names_of_features_are_kept(self, tmp_path, moons):
        pandas = pytest.importorskip("pandas")
        X = pandas.DataFrame(moons[0], columns=["höhe", "width"])
        fast = BordersClassifier(random_state=0).fit(X, moons[1])
        fast.save(tmp_path / "m.limes")
        again = limes.load(tmp_path / "m.limes")
        assert_array_equal(again.feature_names_in_, fast.feature_names_in_)
        assert again.feature_names_in_.dtype == object
        assert_array_equal(again.predict(X), fast.predict(X))
        with pytest.raises(ValueError, match="feature names"):
            again.predict(X[["width", "höhe"]])

    def test_a_dense_step_keeps_its_order_of_bytes(self, tmp_path):
        matrix = np.asfortranarray(np.random.default_rng(0).normal(size=(5, 3)))
        one = BorderMap.from_borders(
            points=np.eye(3),
            normals=np.ones((3, 3)),
            preprocessing=AffineMap(np.arange(5.0), matrix),
        )
        stored = Model(PairwiseScheme((one,), 2), np.array([0, 1]), 5)
        save_model(stored, tmp_path / "m.limes")
        again = load_model(tmp_path / "m.limes").scheme.maps[0].preprocessing.matrix
        assert again.flags.f_contiguous
        assert_array_equal(again, matrix)

    def test_the_source_is_not_kept_and_a_report_says_so(self, saved):
        again = limes.load(saved)
        assert not hasattr(again, "estimator_")
        rows = rows_like(again, 50)
        with pytest.raises(ValueError, match="source, which a model file does not keep"):
            again.report(rows)
        again.estimator_ = fitted(votes_scaled).estimator_
        assert again.report(rows).agreement > 0.9

    def test_an_unfitted_classifier_is_not_saved(self, tmp_path):
        with pytest.raises(ValueError, match="not fitted"):
            BordersClassifier().save(tmp_path / "m.limes")
        assert not os.listdir(tmp_path)


class TestLabels:
    @pytest.mark.parametrize(
        "labels",
        [
            np.array([3, 7], dtype=np.int8),
            np.array([0, 2**64 - 1], dtype=np.uint64),
            np.array([-1.5, 2.25]),
            np.array([0.1, 0.2], dtype=np.float32),
            np.array([False, True]),
            np.array(["", "naïve"]),
            np.array(["a", "b"], dtype="<U9"),
            np.array(["long", "ago"], dtype=object),
            np.array([1, 2], dtype=">i4"),
        ],
        ids=lambda labels: labels.dtype.str,
    )
    def test_labels_keep_their_values_and_their_type(self, labels, tmp_path):
        save_model(two_classes(labels), tmp_path / "m.limes")
        again = load_model(tmp_path / "m.limes").classes
        assert again.tolist() == labels.tolist()
        assert again.dtype == labels.dtype.newbyteorder("<")

    @pytest.mark.parametrize(
        "labels",
        [
            np.array([(1, 2), None], dtype=object),
            np.array([b"a", b"b"]),
            np.array([1j, 2j]),
            np.array(["2020", "2021"], dtype="datetime64[Y]"),
            np.array(["a\0", "b"], dtype=object),
        ],
        ids=lambda labels: labels.dtype.str,
    )
    def test_labels_that_are_neither_numbers_nor_text_are_refused(self, labels, tmp_path):
        with pytest.raises(ValueError, match="cannot be stored"):
            save_model(two_classes(labels), tmp_path / "m.limes")
        assert not os.listdir(tmp_path)


def two_classes(labels):
    line = BorderMap.from_borders(points=[[0.0, 1.0]], normals=[[0.0, 2.0]])
    return Model(PairwiseScheme((line,), 2), labels, 2)


ROWS = np.array([[-2.0, 1.0, 0.0], [3.0, 1.0, 1.0], [0.0, -4.0, 2.0], [9.0, 9.0, 9.0]])


class TestOldVersions:
    """A file of each version ever released, which must always load."""

    @pytest.mark.parametrize("version", [1, 2])
    def test_a_file_of_an_old_version_loads(self, version):
        fast = limes.load(DATA / f"version_{version}.limes")
        assert fast.feature_names_in_.tolist() == ["height", "width", "depth"]
        expected = json.loads((DATA / "version_1.json").read_text())
        with pytest.warns(UserWarning, match="feature names"):
            assert fast.predict(ROWS).tolist() == expected["labels"]
        probabilities = load_model(DATA / f"version_{version}.limes").predict_proba(ROWS)
        np.testing.assert_allclose(probabilities, expected["probabilities"], rtol=1e-12)
        assert fast.agreement_ == 0.984375
        assert np.isnan(fast.fit_seconds_)

    def test_the_time_of_the_fit_is_saved(self, tmp_path):
        fast = limes.load(DATA / "version_2.limes")
        info = replace(fast.model_.info, fit_seconds=12.5)
        save_model(replace(fast.model_, info=info), tmp_path / "m.limes")
        assert limes.load(tmp_path / "m.limes").fit_seconds_ == 12.5

    def test_version_1_is_written_again_as_version_2(self, tmp_path):
        limes.load(DATA / "version_1.limes").save(tmp_path / "m.limes")
        header = json.loads(header_text((DATA / "version_2.limes").read_bytes()))
        # Entries that files of version 2 may lack.
        header["info"] |= {"coverage_agreement": None, "fit_seconds": None, "features": None}
        header["info"] |= {"agreement_rows": "", "warnings": []}
        header["info"]["parameters"] |= {"fallback": "auto", "curved": True, "effort": 1.0}
        again = json.loads(header_text((tmp_path / "m.limes").read_bytes()))
        assert {**again, "limes": ""} == {**header, "limes": ""}

    @pytest.mark.parametrize(
        ("change", "found"),
        [
            (lambda h: h.update(classes={"kind": "array", "array": 99}), "99"),
            (lambda h: h.update(classes=[]), "'classes'"),
            (lambda h: h["scheme"].pop("fields"), "'fields'"),
            (lambda h: h["scheme"]["fields"].update(by_vote=1), "'by_vote'"),
            (lambda h: h["scheme"]["fields"].update(double=1), "bool"),
            (lambda h: h["scheme"]["fields"].pop("by_vote"), "fields"),
            (lambda h: h["scheme"]["fields"]["maps"].update(before=[]), "sizes of maps"),
            (lambda h: h["scheme"]["fields"]["maps"].update(points={"array": 0}), "'points'"),
            (lambda h: h["scheme"]["fields"]["maps"]["before"][0].update(n_outputs=10**12), "rows"),
            (lambda h: h["scheme"]["fields"]["maps"]["before"][0].update(n_outputs=1), "columns"),
            (lambda h: h["scheme"]["fields"]["maps"]["before"][0].update(indptr=0), "'indptr'"),
            (lambda h: h["attributes"].update(__class__=1), "names of attributes"),
            (lambda h: h["attributes"].update(predict=1), "names of attributes"),
            (lambda h: h["attributes"].update(agreement_=1e400), "expected"),
            (lambda h: h["attributes"].update(agreement_={"kind": "float", "text": "1"}), "'nan'"),
            (lambda h: h.update(tradeoff=7), "'candidates'"),
            (lambda h: h.update(tradeoff=[{"cost": 1}]), "a candidate with"),
        ],
    )
    def test_a_hostile_header_of_version_1_is_refused(self, tmp_path, change, found):
        data = (DATA / "version_1.limes").read_bytes()
        message = refusal(tmp_path / "m.limes", change_header(data, change))
        assert found in message

    def test_a_sparse_matrix_of_version_1_that_mixes_features_becomes_dense(self, tmp_path):
        """A column transformer with a projection inside was stored in compressed rows."""
        data = (DATA / "version_1.limes").read_bytes()
        header = json.loads(header_text(data))
        step = header["scheme"]["fields"]["maps"]["before"][0]
        arrays = parse_container(data, "m", versions=(1,)).arrays
        arrays[step["data"]] = np.array([2.0, 1.0, 0.5, 3.0])
        arrays[step["indices"]] = np.array([0, 1, 1, 2], dtype=np.int32)
        arrays[step["indptr"]] = np.array([0, 2, 3, 4], dtype=np.int32)
        header.pop("arrays")
        with (tmp_path / "m.limes").open("wb") as stream:
            write_container(stream, header, arrays, version=1)
        again = load_model(tmp_path / "m.limes").scheme.maps[0].preprocessing
        assert_array_equal(again.matrix, [[2.0, 1.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 3.0]])

    def test_an_unknown_float_of_version_1_is_nan(self, tmp_path):
        data = (DATA / "version_1.limes").read_bytes()
        nan = {"kind": "float", "text": "nan"}
        line = {"scheme": "shared", "n_borders": 5, "blend": 1, "cost": 10, "agreement": 0.5}
        line |= {"error": 0.1, "is_chosen": True, "lost": nan}

        def change(header):
            header["attributes"]["agreement_"] = nan
            header["tradeoff"] = [line]

        (tmp_path / "m.limes").write_bytes(change_header(data, change))
        again = load_model(tmp_path / "m.limes").info
        assert np.isnan(again.agreement)
        assert again.candidates[0].is_selected
        assert again.candidates[0].agreement_error == 0.1
        assert np.isnan(again.candidates[0].skill_loss)


def header_text(data):
    return data[24 : 24 + int.from_bytes(data[12:16], "little")]


class TestDocument:
    """A reader written from docs/format.md alone, without anything of the package."""

    def test_the_document_suffices_to_read_and_predict(self):
        header, arrays = self.read((DATA / "version_2.limes").read_bytes())
        values = np.column_stack([self.values(part, ROWS) for part in self.maps(header, arrays)])
        votes = np.zeros((len(ROWS), 3), dtype=int)
        for column, (first, second) in enumerate([(0, 1), (0, 2), (1, 2)]):
            winners = np.where(values[:, column] > 0, second, first)
            votes[np.arange(len(ROWS)), winners] += 1
        labels = arrays[header["classes"]][votes.argmax(axis=1)]
        expected = json.loads((DATA / "version_1.json").read_text())
        assert labels.tolist() == expected["labels"]

    def read(self, data):
        assert data[:8] == bytes.fromhex("894C494D45530D0A")
        version, n_header = np.frombuffer(data, "<u4", 2, offset=8)
        assert version == 2
        assert np.frombuffer(data, "<u8", 1, offset=16) == len(data)
        assert sha256(data[:-32]).digest() == data[-32:]
        header, place, arrays = json.loads(data[24 : 24 + n_header]), 24 + int(n_header), []
        for entry in header["arrays"]:
            size = int(np.prod(entry["shape"]))
            flat = np.frombuffer(data, entry["dtype"], size, offset=place)
            arrays.append(flat.reshape(entry["shape"], order=entry.get("order", "C")))
            place = -(-(place + flat.nbytes) // 64) * 64
        assert place == len(data) - 32
        return header, arrays

    def maps(self, header, arrays):
        """Points, slopes, offsets, preprocessing and blend of each map."""
        stored, width = header["scheme"]["maps"], header["n_features"]
        flat = {name: arrays[stored[name]] for name in ("points", "slopes", "offsets")}
        for n_points, n_values, number, blend in arrays[stored["table"]]:
            step = {name: arrays[k] for name, k in stored["preprocessing"][number].items()}
            sizes = {
                "points": (n_points, len(step["columns"])),
                "slopes": (n_points, n_values, width),
                "offsets": (n_points, n_values),
            }
            parts = {}
            for name, shape in sizes.items():
                parts[name] = flat[name][: np.prod(shape)].reshape(shape)
                flat[name] = flat[name][np.prod(shape) :]
            yield {**parts, **step, "blend": int(blend)}

    def values(self, part, rows):
        z = (rows - part["shift"])[:, part["columns"]] * part["scale"]
        halves = np.square(z[:, None] - part["points"]).sum(axis=2) / 2
        order = np.argsort(halves, axis=1, kind="stable")[:, : part["blend"] + 1]
        ranked = np.take_along_axis(halves, order, axis=1)
        weights = ranked[:, -1:] - ranked[:, :-1]
        each = np.einsum("nd,mqd->nmq", rows, part["slopes"]) + part["offsets"]
        taken = np.take_along_axis(each[:, :, 0], order[:, :-1], axis=1)
        return (weights * taken).sum(axis=1) / weights.sum(axis=1)


class TestDamage:
    def test_every_byte_matters(self, saved, tmp_path):
        data = saved.read_bytes()
        rng = np.random.default_rng(0)
        for place in {*range(PREAMBLE.size), *rng.integers(len(data), size=100).tolist()}:
            changed = bytearray(data)
            changed[place] ^= 1 << int(rng.integers(8))
            refusal(tmp_path / "m.limes", bytes(changed))

    def test_a_file_cut_anywhere_is_refused_and_says_where(self, saved, tmp_path):
        data = saved.read_bytes()
        for size in (0, 1, 8, 23, 24, 100, len(data) - 33, len(data) - 1):
            message = refusal(tmp_path / "m.limes", data[:size])
            assert f"byte {size if size >= 8 else 0}:" in message

    def test_a_file_with_more_behind_it_is_refused(self, saved, tmp_path):
        data = saved.read_bytes()
        message = refusal(tmp_path / "m.limes", data + b"more")
        assert f"byte {len(data)}: expected the end" in message
        assert "4 bytes more" in message

    def test_text_is_no_model(self, tmp_path):
        message = refusal(tmp_path / "m.limes", b"svm_type c_svc\n")
        assert "byte 0: expected a limes model" in message

    def test_a_pickle_is_not_executed(self, tmp_path):
        class Bomb:
            def __reduce__(self):
                return os.mkdir, (str(tmp_path / "executed"),)

        refusal(tmp_path / "m.limes", pickle.dumps(Bomb()))
        assert not (tmp_path / "executed").exists()

    def test_a_newer_version_is_named(self, saved, tmp_path):
        data = saved.read_bytes()[:-32]
        changed = sealed(data[:8] + (3).to_bytes(4, "little") + data[12:])
        message = refusal(tmp_path / "m.limes", changed)
        assert "byte 8: expected format version 1 or 2" in message
        assert "found 3" in message

    def test_a_larger_file_than_allowed_is_not_read(self, saved):
        with pytest.raises(ValueError, match=r"byte 100: expected the end .*max_bytes=100"):
            limes.load(saved, max_bytes=100)

    def test_a_vast_sparse_file_is_not_read(self, tmp_path):
        path = tmp_path / "m.limes"
        with path.open("wb") as stream:
            stream.truncate(1 << 40)
        with pytest.raises(ValueError, match="expected the end"):
            limes.load(path)

    @pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
    def test_what_is_no_plain_file_is_refused_at_once(self, make, tmp_path):
        make(tmp_path / "m.limes")
        with pytest.raises(ValueError, match="expected a plain file"):
            limes.load(tmp_path / "m.limes")

    def test_a_missing_file_is_named(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"m\.limes"):
            limes.load(tmp_path / "m.limes")


class TestHostileHeader:
    """Files whose checksum is right and whose header is not."""

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            (b"", "Expecting value"),
            (b"{" * 10, "Expecting"),
            (b"[" * 100_000, "recursion"),
            (b'{"a":' * 300 + b"1" + b"}" * 300, "arrays"),
            (b"[]", "JSON object"),
            (b'{"a": NaN}', "NaN"),
            (b'{"a": 1, "a": 2}', "twice"),
            (b'{"a": ' + b"9" * 9000 + b"}", "4300"),
            (b"\xff\xfe", "ascii"),
        ],
    )
    def test_bad_json_is_refused(self, saved, tmp_path, text, found):
        message = refusal(tmp_path / "m.limes", with_header(saved.read_bytes(), text))
        assert found in message

    @pytest.mark.parametrize(
        ("change", "found"),
        [
            (lambda h: h.pop("arrays"), "'arrays'"),
            (lambda h: h.update(arrays=[{}]), "array 0"),
            (lambda h: h["arrays"][0].update(dtype="|O"), "the type '|O'"),
            (lambda h: h["arrays"][0].update(dtype="<U99999999"), "bytes for it"),
            (lambda h: h["arrays"][0].update(shape=[2**47]), "bytes for it"),
            (lambda h: h["arrays"][0].update(shape=[-1]), "shape"),
            (lambda h: h["arrays"][0].update(shape=[0, 2**47, 2**47]), "array 0"),
            (lambda h: h["arrays"][0].update(shape=[True]), "shape"),
            (lambda h: h["arrays"][0].update(extra=1), "array 0"),
            (lambda h: h["arrays"].append({"dtype": "<f8", "shape": [10**9]}), "bytes for it"),
            (lambda h: h["arrays"].pop(), "bytes more"),
            (lambda h: h.pop("n_features"), "number of features"),
            (lambda h: h.update(n_features=10**30), "expected"),
            (lambda h: h.update(n_features=True), "number of features"),
            (lambda h: h.pop("classes"), "'classes'"),
            (lambda h: h.update(classes=99), "99"),
            (lambda h: h.update(classes=-1), "-1"),
            (lambda h: h.pop("scheme"), "'scheme'"),
            (lambda h: h["scheme"].update(name="os.system"), "'os.system'|os.system"),
            (lambda h: h["scheme"].update(by_vote=1), "'by_vote'"),
            (lambda h: h["scheme"].pop("by_vote"), "fields"),
            (lambda h: h["scheme"].update(compiled=1), "fields"),
            (lambda h: h["scheme"].update(dtype="float16"), "dtype"),
            (lambda h: h["scheme"].update(n_classes=10**9), "a number of classes"),
            (lambda h: h["scheme"].update(n_classes=10**4000), "a number of classes"),
            (lambda h: h["scheme"].update(n_classes=2), "1 values for 2 classes"),
            (lambda h: h["scheme"].update(n_classes=-2), "a number of classes"),
            (lambda h: h["scheme"].update(maps=3), "expected"),
            (lambda h: h["scheme"]["maps"].update(points=0), "expected"),
            (lambda h: h["scheme"]["maps"].update(preprocessing=[]), "sizes of maps"),
            (lambda h: h["scheme"]["maps"].update(preprocessing=[1]), "an affine map"),
            (lambda h: h["scheme"]["maps"]["preprocessing"][0].pop("shift"), "'shift'"),
            (lambda h: h["scheme"]["maps"]["preprocessing"][0].pop("columns"), "'columns'"),
            (lambda h: h["scheme"]["maps"]["preprocessing"][0].update(matrix=3), "'matrix'"),
            (lambda h: h["scheme"]["maps"]["preprocessing"][0].update(shift=3), "affine map of"),
            (lambda h: h["scheme"]["maps"]["preprocessing"][0].update(scale=3), "as many columns"),
            (lambda h: h.pop("info"), "'info'"),
            (lambda h: h["info"].pop("agreement"), "'info'"),
            (lambda h: h["info"].update(later=1), "'info'"),
            (lambda h: h["info"].update(agreement=1e400), "expected"),
            (lambda h: h["info"].update(agreement="high"), "float 'agreement'"),
            (lambda h: h["info"].update(placement=1), "placement"),
            (lambda h: h["info"]["parameters"].update(dtype="float16"), "dtype must be"),
            (lambda h: h["info"]["parameters"].update(estimator=1), "names of parameters"),
            (lambda h: h["info"]["parameters"].update(__class__=1), "names of parameters"),
            (lambda h: h["info"]["parameters"].update(blend=[1]), "plain value"),
            (lambda h: h["info"].update(candidates=7), "'candidates'"),
            (lambda h: h["info"].update(candidates=[7]), "a candidate"),
            (lambda h: h["info"].update(candidates=[{"cost": 1}]), "a candidate"),
            (lambda h: h["info"].update(candidates=[candidate(cost=1.5)]), "int 'cost'"),
            (lambda h: h["info"].update(candidates=[candidate(agreement=[])]), "float 'agreement'"),
            (lambda h: h.pop("sections"), "'sections'"),
            (lambda h: h["sections"].update(exact_source={}), "exact_source"),
            (lambda h: h["sections"].update(curved_base={}), "curved_base"),
        ],
    )
    def test_a_header_that_does_not_fit_is_refused(self, saved, tmp_path, change, found):
        path = tmp_path / "m.limes"
        path.write_bytes(change_header(saved.read_bytes(), change))
        with pytest.raises(ValueError) as raised:
            limes.load(path)
        message = str(raised.value)
        assert message.startswith(str(path))
        assert "\n" not in message
        assert len(message) < 400 + len(str(path))
        assert any(word in message for word in found.split("|"))

    def test_a_parameter_of_a_later_release_is_left_aside(self, saved, tmp_path):
        path = tmp_path / "m.limes"
        path.write_bytes(
            change_header(
                saved.read_bytes(), lambda header: header["info"]["parameters"].update(later=1)
            )
        )
        assert "later" not in limes.load(path).get_params()

    def test_many_classes_and_few_maps_take_no_memory(self, tmp_path):
        line = BorderMap.from_borders(points=[[0.0]], normals=[[2.0]])
        stored = Model(PairwiseScheme((line,), 10**6), np.arange(10**6), 1)
        save_model(stored, tmp_path / "m.limes")
        with pytest.raises(ValueError, match="expected a number of classes for 1 values"):
            limes.load(tmp_path / "m.limes")

    @pytest.mark.parametrize("columns", [[0, 1, 3], [-1, 0, 1]])
    def test_columns_that_do_not_exist_are_refused(self, tmp_path, columns):
        step = AffineMap(np.zeros(3), columns=np.array(columns), scale=np.ones(3))
        line = BorderMap(np.eye(3), np.ones((3, 1, 3)), np.ones((3, 1)), step)
        save_model(Model(PairwiseScheme((line,), 2), np.arange(2), 3), tmp_path / "m.limes")
        with pytest.raises(ValueError, match="expected columns below 3"):
            limes.load(tmp_path / "m.limes")

    def test_a_scheme_that_files_do_not_know_is_not_written(self, tmp_path):
        class Other(PairwiseScheme):
            pass

        model = two_classes(np.arange(2))
        with pytest.raises(TypeError, match=r"a model file holds the schemes .* got Other"):
            save_model(replace(model, scheme=Other(model.scheme.maps, 2)), tmp_path / "m.limes")
        assert not os.listdir(tmp_path)

    def test_as_many_labels_as_classes_are_needed(self, tmp_path):
        save_model(two_classes(np.arange(3)), tmp_path / "m.limes")
        with pytest.raises(ValueError, match="expected 2 labels, at least two"):
            limes.load(tmp_path / "m.limes")

    def test_a_matrix_has_a_row_for_each_feature(self, tmp_path):
        step = AffineMap(np.zeros(2), np.ones((3, 2)))
        line = BorderMap(np.eye(2), np.ones((2, 1, 2)), np.ones((2, 1)), step)
        save_model(Model(PairwiseScheme((line,), 2), np.arange(2), 2), tmp_path / "m.limes")
        with pytest.raises(ValueError, match="expected a matrix of 2 rows"):
            limes.load(tmp_path / "m.limes")

    def test_labels_are_numbers(self, tmp_path):
        save_model(two_classes(np.array([0.0, np.nan])), tmp_path / "m.limes")
        with pytest.raises(ValueError, match="expected labels that differ"):
            limes.load(tmp_path / "m.limes")

    @pytest.mark.parametrize("number", [np.nan, np.inf])
    def test_numbers_that_are_none_are_refused(self, tmp_path, number):
        line = BorderMap([[number]], [[[1.0]]], [[0.0]])
        save_model(Model(PairwiseScheme((line,), 2), np.arange(2), 1), tmp_path / "m.limes")
        with pytest.raises(ValueError, match="expected maps that predict a row"):
            limes.load(tmp_path / "m.limes")


class TestArrays:
    @pytest.mark.parametrize(
        "array",
        [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.eye(3)), np.array([], dtype="<i4")],
    )
    def test_an_array_comes_back(self, array):
        data = memoryview(array_bytes(array, 64))
        assert len(data) % 64 == 0
        again, n_bytes = read_array(describe_array(array), data)
        assert n_bytes == array.nbytes
        assert_array_equal(again, array)
        assert again.flags.f_contiguous == array.flags.f_contiguous

    def test_a_truth_value_is_0_or_1(self):
        with pytest.raises(ValueError, match="truth value"):
            read_array({"dtype": "|b1", "shape": [2]}, memoryview(b"\1\2"))

    def test_a_character_is_in_unicode(self):
        with pytest.raises(ValueError, match="Unicode"):
            read_array({"dtype": "<U1", "shape": [1]}, memoryview(b"\0\0\x11\0"))


class TestOtherWays:
    """The ways that scikit-learn's users know."""

    @pytest.mark.parametrize("case", [votes, coupled, one_vs_rest, votes_scaled])
    def test_joblib_keeps_the_whole_estimator(self, case, tmp_path):
        fast, rows = fitted(case), rows_like(fitted(case), 500)
        fast.predict(rows)
        joblib.dump(fast, tmp_path / "m.joblib")
        again = joblib.load(tmp_path / "m.joblib")
        assert_array_equal(again.predict_proba(rows), fast.predict_proba(rows))
        assert again.report(rows).agreement == fast.report(rows).agreement

    def test_a_pickle_holds_nothing_of_this_processor(self):
        fast = fitted(binary)
        size = len(pickle.dumps(fast))
        fast.predict(rows_like(fast, 10))
        assert len(pickle.dumps(fast)) == size

    @pytest.mark.parametrize("case", [votes, coupled, one_vs_rest, votes_scaled])
    def test_skops_keeps_the_whole_estimator(self, case):
        skops = pytest.importorskip("skops.io")
        fast, rows = fitted(case), rows_like(fitted(case), 500)
        data = skops.dumps(fast)
        own = skops.get_untrusted_types(data=data)
        assert all(name.startswith(("limes.", "sklearn.", "numpy.", "scipy.")) for name in own)
        again = skops.loads(data, trusted=own)
        assert_array_equal(again.predict_proba(rows), fast.predict_proba(rows))


def test_a_killed_save_leaves_the_old_model(saved, tmp_path):
    path = tmp_path / "m.limes"
    path.write_bytes(saved.read_bytes())
    code = f"""
        import os, signal
        import limes
        import limes.model.file_layout as container
        fast = limes.load({str(path)!r})
        class Sum:
            def __init__(self): self.n = 0
            def update(self, piece):
                self.n += 1
                if self.n == 4:
                    os.kill(os.getpid(), signal.SIGKILL)
        container.sha256 = Sum
        fast.save({str(path)!r})
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == saved.read_bytes()


def test_bytes_and_files_are_read_alike(saved):
    data = saved.read_bytes()
    assert parse_model(data, "m").n_features == load_model(saved).n_features
    assert parse_container(data, "m", versions=(2,)).positions[0] % 64 == 0
