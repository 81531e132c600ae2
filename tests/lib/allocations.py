"""Whoever asks for places for players: a service with the scope muster_allocate, over HTTP."""

import itertools
import threading

from http_api import Api
from players import token_of

names = itertools.count(1)


class Later:
    """An answer that is waited for on a thread of its own."""

    def __init__(self, call):
        self.given = None
        self.thread = threading.Thread(target=self.run, args=(call,), daemon=True)
        self.thread.start()

    def run(self, call):
        self.given = call()

    def answer(self, timeout_s=20):
        self.thread.join(timeout_s)
        assert self.given is not None, "no answer came"
        return self.given


class Allocator(Api):
    def __init__(self, world, fleet="arena", scopes=("muster_allocate", "muster_read")):
        super().__init__(world.muster, token_of(world, "matchmaker", *scopes))
        self.fleet = fleet

    def request(self, player, friends=(), ticket=None, **more):
        body = {"envelopeVersion": "1.0", "type": "allocation-request",
                "ticketId": ticket or f"t{next(names)}", "fleet": self.fleet, "playerId": player,
                **more}
        if friends:
            body["joinOnIds"] = list(friends)
        return body

    def seek(self, player, friends=(), wait=None, **more):
        """The whole answer, whatever it is."""
        query = {"wait": wait} if wait else None
        return self.ask("POST", "/v1/allocations", query, self.request(player, friends, **more),
                        timeout_s=90)

    def placed(self, player, friends=(), **more):
        """The result of one that must succeed."""
        answer = self.seek(player, friends, **more)
        assert (answer.status, answer.json["status"]) == (200, "Success"), answer
        return answer.json

    def queued(self, player, friends=(), **more):
        answer = self.seek(player, friends, **more)
        assert (answer.status, answer.json["status"]) == (202, "Queued"), answer
        return answer.json

    def failed(self, status, code, player, friends=(), **more):
        """The sentence of one that must fail."""
        answer = self.seek(player, friends, **more)
        assert answer.status == status, answer
        assert (answer.json["status"], answer.error["code"]) == ("Failure", code), answer
        assert answer.error["message"] == answer.json["errorMessage"]
        return answer.json["errorMessage"]

    def look(self, ticket, wait=None):
        return self.get(f"/v1/allocations/{ticket}", **({"wait": wait} if wait else {}))

    def end(self, ticket):
        """Begins to wait for the last result."""
        return Later(lambda: self.look(ticket, wait=30)["result"])

    def cancel(self, ticket):
        return self.ask("DELETE", f"/v1/allocations/{ticket}")
