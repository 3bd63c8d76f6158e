"""No module imports, by whatever way, a module that imports it: not even for its types."""

from graphlib import TopologicalSorter

import grimp


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = grimp.build_graph("zuno", "zuno_devnet")
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    order = list(TopologicalSorter(imports).static_order())  # CycleError names the circle
    assert len(order) == len(imports)
