"""``td.compat.v1.contrib.distributions``: those of ``distributions``, and of vectors."""

from treadle.compat.v1.distributions import (
    FULLY_REPARAMETERIZED as FULLY_REPARAMETERIZED,
)
from treadle.compat.v1.distributions import (
    NOT_REPARAMETERIZED as NOT_REPARAMETERIZED,
)
from treadle.compat.v1.distributions import Bernoulli as Bernoulli
from treadle.compat.v1.distributions import Beta as Beta
from treadle.compat.v1.distributions import Categorical as Categorical
from treadle.compat.v1.distributions import Dirichlet as Dirichlet
from treadle.compat.v1.distributions import DirichletMultinomial as DirichletMultinomial
from treadle.compat.v1.distributions import Distribution as Distribution
from treadle.compat.v1.distributions import Exponential as Exponential
from treadle.compat.v1.distributions import Gamma as Gamma
from treadle.compat.v1.distributions import Laplace as Laplace
from treadle.compat.v1.distributions import Multinomial as Multinomial
from treadle.compat.v1.distributions import Normal as Normal
from treadle.compat.v1.distributions import RegisterKL as RegisterKL
from treadle.compat.v1.distributions import ReparameterizationType as ReparameterizationType
from treadle.compat.v1.distributions import StudentT as StudentT
from treadle.compat.v1.distributions import Uniform as Uniform
from treadle.compat.v1.distributions import kl_divergence as kl_divergence
from treadle.compat.v1.distributions.vectors import (
    MultivariateNormalDiag as MultivariateNormalDiag,
)
from treadle.names import missing_in

__getattr__ = missing_in(__name__)
