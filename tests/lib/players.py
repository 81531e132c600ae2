"""Players of a test: who they are, and what they ask for."""

import json
from urllib.parse import quote

from http_api import Api

ARENA = {
    "name": "arena", "provider": "agent", "game": "arena", "server": "main", "binary": "bin/arena",
    "max_players": 4, "versions": [{"name": "1.0"}, {"name": "0.9", "enabled": False}],
}


def fleets(**changes):
    """A configuration with the arena, changed as the test likes."""
    return [{"name": "default"}, {**ARENA, **changes}]


def token_of(world, account, *scopes):
    made = world.api.post("/v1/access-tokens", account=account, scopes=list(scopes))
    return made["token"]


class Player(Api):
    def __init__(self, world, account, scopes=("game",), game="arena/main/1.0"):
        super().__init__(world.muster, token_of(world, account, *scopes))
        self.account = account
        self.game = game

    def create(self, settings=None, key=None, **data):
        if settings is not None:
            data["settings"] = settings
        return self.post(f"/create/{self.game}", key, **data)

    def join(self, settings=None, key=None, **data):
        if settings is not None:
            data["settings"] = settings
        return self.post(f"/join/{self.game}", key, **data)

    def enter(self, room, **data):
        return self.post(f"/room/{self.game.split('/')[0]}/{room}/join", **data)

    def rooms(self, settings=None, **query):
        if settings is not None:
            query["settings"] = json.dumps(settings)
        return self.get(f"/rooms/{self.game}", **query)["rooms"]

    def seats(self, account=None):
        return self.get(f"/player/{quote(account or self.account, safe='')}")["seats"]

    def cannot(self, status, code, verb="join", **options):
        """The whole answer to something that must be refused."""
        options.setdefault("data", {})
        answer = self.ask("POST", f"/{verb}/{self.game}", **options)
        assert (answer.status, answer.error["code"]) == (status, code), answer
        return answer
