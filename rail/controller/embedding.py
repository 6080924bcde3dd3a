"""Task embeddings from the prompt's text: hashed character n-grams, TF-IDF, truncated SVD.

`our choice` (the paper says only that z holds a task embedding): needs no pretrained model and no
network, and is the same bytes for the same prompts and seed.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import normalize

_BUCKETS = 2**14  # our choice: few collisions among some thousand n-grams of a task pool
_NGRAMS = (3, 5)  # our choice: word pieces; robust to names never seen

_NOTHING = 1e-9  # rounding noise of the SVD on columns that the fit never saw


class TaskEmbedding:
    """Maps prompts to unit vectors; fitted once on the training pool's prompts."""

    def __init__(self, pipeline: Pipeline, size: int) -> None:
        self._pipeline = pipeline
        self.size = size

    @classmethod
    def fit(cls, prompts: Sequence[str], size: int, seed: int) -> "TaskEmbedding":
        """Fit on `prompts`.

        Raises:
            ValueError: If there is no prompt.
        """
        if not prompts:
            raise ValueError("a task embedding needs at least one prompt to fit on, got none")
        hashing = HashingVectorizer(
            analyzer="char_wb",
            ngram_range=_NGRAMS,
            n_features=_BUCKETS,
            alternate_sign=False,
            norm=None,  # pyright: ignore[reportArgumentType]  # counts: TF-IDF norms them itself
        )
        tfidf = TfidfTransformer(sublinear_tf=True)
        svd = TruncatedSVD(min(size, len(prompts)), random_state=seed)
        pipeline = Pipeline([("hash", hashing), ("tfidf", tfidf), ("svd", svd)])
        pipeline.fit(list(prompts))
        return cls(pipeline, size)

    def transform(self, prompts: Sequence[str]) -> NDArray[np.float64]:
        """Return (n, size) rows of unit norm; zero where no n-gram of the fit occurs.

        Columns that a pool smaller than `size` cannot fill are 0.
        """
        reduced = np.asarray(self._pipeline.transform(list(prompts)), dtype=np.float64)
        rows = np.zeros((len(prompts), self.size))
        reduced[np.linalg.norm(reduced, axis=1) < _NOTHING] = 0.0
        rows[:, : reduced.shape[1]] = np.asarray(normalize(reduced))
        return rows
