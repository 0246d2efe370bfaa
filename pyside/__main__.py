# SPDX-License-Identifier: MIT
"""`python pyside` is a kernel: see vivarium_kernel.connection for what it must inherit."""


def start() -> None:
    # Read descriptor 3 before anything else is imported, for imports open descriptors too.
    from vivarium_kernel.connection import LaunchError, read_launch

    try:
        launch = read_launch()
    except LaunchError as error:
        raise SystemExit(f"kernel refused to start: {error}") from None
    from vivarium_charts.fontlist import provide_at_import
    from vivarium_kernel.app import main

    provide_at_import()
    main(launch)


start()
