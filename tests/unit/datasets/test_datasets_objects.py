import pytest
from hypothesis import given
from hypothesis import strategies as st

from readout_audit.datasets.objects import extract_object, is_misspelt


@pytest.mark.parametrize(
    ("question", "noun"),
    [
        ("Is there a snowboard in the image?", "snowboard"),
        ("Is there an umbrella in the imange?", "umbrella"),
        ("Is there a dining table in the image?", "dining table"),
        ("is there an  orange   juice in the image", "orange juice"),
        ("Is there a cup in the sink in the image?", "cup in the sink"),
        ("Are there any people in the picture?", "people"),
        ("Is there wine glass in this photo ?", "wine glass"),
        ("Is there a t-shirt in the image?\n", "t-shirt"),
        ("Is there anchor in the image?", "anchor"),
        ("Is there a in the image?", None),
        ("Is there in the image?", None),
        ("Is there a dog?", None),
        ("Does the image show a dog?", None),
        ("Is there a dog in the image? Answer yes or no only.", None),
        ("", None),
    ],
)
def test_noun_of_a_question(question, noun):
    assert extract_object(question) == noun


@pytest.mark.parametrize(
    ("question", "misspelt"),
    [
        ("Is there an oven in the imange?", True),
        ("Is there an oven in the Imange", True),
        ("Is there an oven in the image?", False),
        ("Is there an imanger in the image?", False),
    ],
)
def test_misspelling_is_seen(question, misspelt):
    assert is_misspelt(question) is misspelt


WORD = st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=1, max_size=8)


@given(st.lists(WORD, min_size=1, max_size=3).map(" ".join), st.sampled_from(["image", "imange"]))
def test_noun_put_into_a_question_comes_back(noun, ending):
    if noun.split()[0] in {"a", "an", "any", "some"}:
        noun = f"x{noun}"
    article = "an" if noun[0] in "aeiou" else "a"
    assert extract_object(f"Is there {article} {noun} in the {ending}?") == noun
