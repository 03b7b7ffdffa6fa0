"""The public names and where they are; `__init__.py` imports them when they are first used."""

from . import edges as edges
from . import files as files
from . import formats as formats
from .edges import read_graph as read_graph
from .files import write_atomically as write_atomically
from .formats import SUFFIXES as SUFFIXES
from .formats import read_table as read_table
from .formats import write_table as write_table
from .metadata import data_hash as data_hash
from .models import load_model as load_model
from .models import save_model as save_model
from .table import ID_NAMES as ID_NAMES
from .table import LABEL_NAMES as LABEL_NAMES
from .table import Table as Table
