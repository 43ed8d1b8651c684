import numpy as np
import pytest
import torch
from transform.golden_cases import golden_matrix

from hadamard_finder.transform.butterfly import signs_of
from hadamard_finder.transform.matrices import MATRICES


@pytest.mark.parametrize("order", [12, 20, 28, 40])
def test_each_matrix_is_hadamard(order):
    matrix = np.array(MATRICES[order])
    assert set(np.unique(matrix)) == {-1, 1}
    assert (matrix @ matrix.T == order * np.eye(order)).all()


@pytest.mark.parametrize("order", [12, 20, 28, 40])
def test_each_matrix_is_the_golden_one(order):
    assert (np.array(MATRICES[order]) == golden_matrix(order)).all()


@pytest.mark.parametrize("order", [12, 20, 28, 40])
def test_the_tensor_made_on_the_device_is_the_matrix(order):
    made = signs_of(order, torch.float32, torch.device("cpu"))
    assert made.tolist() == golden_matrix(order).tolist()


def test_only_the_matrix_of_order_twelve_is_symmetric():
    symmetric = [
        order for order, rows in MATRICES.items() if tuple(zip(*rows, strict=True)) == rows
    ]
    assert symmetric == [12]
