"""``td.compat.v1.distributions``: samples, densities and moments of distributions."""

from treadle.compat.v1.distributions.base import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    Distribution,
    RegisterKL,
    ReparameterizationType,
    kl_divergence,
)
from treadle.compat.v1.distributions.continuous import (
    Beta,
    Exponential,
    Gamma,
    Laplace,
    Normal,
    StudentT,
    Uniform,
)
from treadle.compat.v1.distributions.discrete import (
    Bernoulli,
    Categorical,
    Dirichlet,
    DirichletMultinomial,
    Multinomial,
)
from treadle.names import missing_in

__all__ = [
    "FULLY_REPARAMETERIZED",
    "NOT_REPARAMETERIZED",
    "Bernoulli",
    "Beta",
    "Categorical",
    "Dirichlet",
    "DirichletMultinomial",
    "Distribution",
    "Exponential",
    "Gamma",
    "Laplace",
    "Multinomial",
    "Normal",
    "RegisterKL",
    "ReparameterizationType",
    "StudentT",
    "Uniform",
    "kl_divergence",
]

__getattr__ = missing_in(__name__)
