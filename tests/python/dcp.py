"""Distributed Checkpoint of the PyTorch that is installed, or None."""
import dataclasses
import importlib


def package():
    """PyTorch 1.13 was made for Python 3.10: from 3.11 on, dataclasses refuse a default value without a hash, and so the import of its
    Distributed Checkpoint. The class of this value gets a hash here, as it has in later versions of PyTorch."""
    original = dataclasses.dataclass

    def dataclass(cls=None, **options):
        if cls is not None and cls.__name__ == "TensorProperties":
            return original(unsafe_hash=True, **options)(cls)
        return original(cls, **options)

    for name in ("torch.distributed.checkpoint", "torch.distributed._shard.checkpoint"):
        dataclasses.dataclass = dataclass
        try:
            found = importlib.import_module(name)
            if hasattr(found, "StorageWriter"):
                return found
        except ImportError:
            pass
        finally:
            dataclasses.dataclass = original
    return None
