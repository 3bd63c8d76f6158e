"""Which models of a role's chain can be asked with the keys that are set."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from zuno.adapters.model.vendors import Price, VendorModel
from zuno.kernel.errors import UsageError
from zuno.llm.names import DEFAULT_MODELS, ModelId, Vendor
from zuno.llm.port import Model, RoleModels


class ModelTable:
    """A fixed table with a default for other roles. Closes its models."""

    def __init__(self, otherwise: RoleModels, roles: Mapping[str, RoleModels] | None = None) -> None:
        self._otherwise = otherwise
        self._roles = dict(roles or {})

    def models_for(self, role: str, round: int) -> RoleModels:
        return self._roles.get(role, self._otherwise)

    async def close(self) -> None:
        assigned = (self._otherwise, *self._roles.values())
        models: dict[int, Model] = {id(model): model for assigned in assigned for model in assigned.models}
        for model in models.values():
            await model.close()


NO_KEY = "no key for a model"
BY_ORDER = "ZUNO_DETERMINISTIC is set"


@dataclass(frozen=True, slots=True)
class ModelKeys:
    """Keys by vendor and, for other servers, by host; its repr is empty."""

    vendors: Mapping[Vendor, str] = field(default_factory=dict, repr=False)
    hosts: Mapping[str, str] = field(default_factory=dict, repr=False)

    def of(self, model_id: ModelId) -> str | None:
        if model_id.vendor is not Vendor.URL:
            return self.vendors.get(model_id.vendor)
        key = self.hosts.get(model_id.host)
        if key is not None and model_id.sends_unencrypted:
            raise UsageError(f"The key for {model_id.host} would travel unencrypted; use https or remove the key.")
        return key


def open_models(
    table: Mapping[str, tuple[ModelId, ...]],
    keys: ModelKeys,
    prices: Mapping[str, Price] | None = None,
    deterministic: bool = False,
) -> ModelTable:
    """The registry of a process. A model is opened once, however many roles use it; nothing is imported."""
    if deterministic:
        return ModelTable(RoleModels((), BY_ORDER))
    opened: dict[ModelId, Model] = {}

    def models(chain: tuple[ModelId, ...]) -> tuple[Model, ...]:
        for model_id in chain:
            if model_id not in opened:
                price = (prices or {}).get(str(model_id))
                opened[model_id] = VendorModel(model_id, keys.of(model_id), price=price)
        return tuple(opened[model_id] for model_id in chain)

    roles = {}
    for role, chain in table.items():
        usable = usable_chain(chain, keys)
        roles[role] = RoleModels(models(usable)) if usable else RoleModels((), NO_KEY)
    return ModelTable(RoleModels((), "no model is configured for this role"), roles)


def usable_chain(chain: tuple[ModelId, ...], keys: ModelKeys) -> tuple[ModelId, ...]:
    """The models of a chain that can be asked: servers by URL always, vendors with a key. If none can, the default
    model of a vendor with a key: with one vendor's key that vendor answers for every role."""
    usable = tuple(model_id for model_id in chain if model_id.vendor is Vendor.URL or keys.vendors.get(model_id.vendor))
    if usable:
        return usable
    return tuple(ModelId(vendor, name) for vendor, name in DEFAULT_MODELS.items() if keys.vendors.get(vendor))[:1]
