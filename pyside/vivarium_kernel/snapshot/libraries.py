# SPDX-License-Identifier: MIT
"""Random generators and options of libraries that are imported; nothing is imported to look."""

import logging
import sys
from typing import Any

# The kernel's, which was there before this module was imported.
OWN_HANDLERS = [
    handler
    for logger in logging.root.manager.loggerDict.values()
    for handler in getattr(logger, "handlers", ())
]
PARTS: dict[str, tuple[Any, Any]] = {}  # name -> what reads it, what sets it


def part(name: str, module: str) -> Any:
    """A class with read(module) and write(module, value), for when the module is there."""

    def register(kind: Any) -> Any:
        def read() -> Any:
            found = sys.modules.get(module)
            return None if found is None else kind.read(found)

        def write(value: Any) -> None:
            __import__(module)
            kind.write(sys.modules[module], value)

        PARTS[name] = read, write
        return kind

    return register


@part("random", "random")
class Random:
    @staticmethod
    def read(random: Any) -> Any:
        return random.getstate()

    @staticmethod
    def write(random: Any, state: Any) -> None:
        random.setstate(state)


@part("warnings", "warnings")
class Warnings:
    @staticmethod
    def read(warnings: Any) -> Any:
        return list(warnings.filters)

    @staticmethod
    def write(warnings: Any, filters: Any) -> None:
        warnings.resetwarnings()  # tells C code that there are others
        warnings.filters[:] = filters


@part("decimal", "decimal")
class Decimal:
    @staticmethod
    def read(decimal: Any) -> Any:
        return decimal.getcontext()

    @staticmethod
    def write(decimal: Any, context: Any) -> None:
        decimal.setcontext(context)


@part("locale", "locale")
class Locale:
    @staticmethod
    def read(locale: Any) -> Any:
        return locale.setlocale(locale.LC_ALL)

    @staticmethod
    def write(locale: Any, name: str) -> None:
        locale.setlocale(locale.LC_ALL, name)


@part("logging", "logging")
class Logging:
    @staticmethod
    def read(logging: Any) -> Any:
        known = {"": logging.root, **logging.root.manager.loggerDict}
        loggers = {name: each for name, each in known.items() if hasattr(each, "handlers")}
        changed = {name: Logging.one(logging, each) for name, each in loggers.items()}
        plain: Any = (logging.NOTSET, True, False, [])
        return logging.root.manager.disable, {
            name: state for name, state in changed.items() if state != plain
        }

    @staticmethod
    def one(logging: Any, logger: Any) -> Any:
        kinds = Logging.kinds(logging)
        new = [each for each in logger.handlers if each not in OWN_HANDLERS]
        handlers = [each for each in new if type(each) in kinds]
        return logger.level, logger.propagate, logger.disabled, handlers

    @staticmethod
    def kinds(logging: Any) -> Any:
        """Of handlers that are the session's; libraries bring others when they are imported."""
        return (logging.StreamHandler, logging.FileHandler)

    @staticmethod
    def write(logging: Any, state: Any) -> None:
        logging.disable(state[0])
        for name, (level, propagate, disabled, handlers) in state[1].items():
            logger = logging.getLogger(name)
            logger.setLevel(level)
            logger.propagate, logger.disabled = propagate, disabled
            present = {repr(each) for each in logger.handlers}
            for handler in handlers:
                if repr(handler) not in present:
                    logger.addHandler(handler)
                    logging._addHandlerRef(handler)


@part("numpy generator", "numpy.random")
class NumpyRandom:
    @staticmethod
    def read(random: Any) -> Any:
        return random.get_state(legacy=False)

    @staticmethod
    def write(random: Any, state: Any) -> None:
        random.set_state(state)


@part("numpy options", "numpy")
class NumpyOptions:
    @staticmethod
    def read(numpy: Any) -> Any:
        return numpy.get_printoptions(), numpy.geterr()

    @staticmethod
    def write(numpy: Any, state: Any) -> None:
        options, errors = state
        options.pop("override_repr", None)  # came with numpy 2.1
        numpy.set_printoptions(**options)
        numpy.seterr(**errors)


@part("pandas options", "pandas._config.config")
class PandasOptions:
    @staticmethod
    def read(config: Any) -> Any:
        found = {}
        for name, option in list(config._registered_options.items()):
            value: Any = config._global_config
            for step in name.split("."):
                value = value[step]
            if value is not option.defval and value != option.defval:
                found[name] = value
        return found or None

    @staticmethod
    def write(config: Any, options: Any) -> None:
        for name, value in options.items():
            config.set_option(name, value)


@part("matplotlib options", "matplotlib")
class MatplotlibOptions:
    @staticmethod
    def read(matplotlib: Any) -> Any:
        usual = matplotlib.rcParamsDefault
        found = {
            name: value
            for name, value in dict.items(matplotlib.rcParams)
            if not name.startswith("backend") and value != dict.get(usual, name)
        }
        return found or None

    @staticmethod
    def write(matplotlib: Any, options: Any) -> None:
        matplotlib.rcParams.update(options)


@part("open figures", "matplotlib._pylab_helpers")
class Figures:
    @staticmethod
    def read(helpers: Any) -> Any:
        managers = helpers.Gcf.figs
        found = [(number, manager.canvas.figure) for number, manager in managers.items()]
        return found or None

    @staticmethod
    def write(helpers: Any, figures: Any) -> None:
        """They registered themselves while loading, each under the next number."""
        import matplotlib.pyplot as plt

        managers = helpers.Gcf.figs
        managers.clear()
        for number, figure in figures:
            manager = getattr(figure.canvas, "manager", None)
            if manager is None:
                backend = plt._get_backend_mod()
                manager = backend.new_figure_manager_given_figure(number, figure)
            manager.num = number
            managers[number] = manager


@part("torch generator", "torch")
class Torch:
    @staticmethod
    def read(torch: Any) -> Any:
        return torch.get_rng_state(), torch.get_default_dtype(), torch.is_grad_enabled()

    @staticmethod
    def write(torch: Any, state: Any) -> None:
        generator, kind, gradients = state
        torch.set_rng_state(generator)
        torch.set_default_dtype(kind)
        torch.set_grad_enabled(gradients)
