"""A submit over a caller's connection in pipeline mode: its replies come too late, so it is refused."""

from __future__ import annotations

import psycopg
import pytest

from cairnq import CairnQ, InvalidArgument


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize("key", [None, "k"])
async def test_it_is_refused_before_anything_is_sent(
    client: CairnQ, database: str, autocommit: bool, key: str | None
) -> None:
    """An error of ours in the middle would not keep the rows from being committed at the pipeline's end."""
    async with await psycopg.AsyncConnection.connect(database, autocommit=autocommit) as connection:
        async with connection.pipeline():
            with pytest.raises(InvalidArgument, match="pipeline mode"):
                await client.submit("x", key=key, session=connection)
            with pytest.raises(InvalidArgument, match="pipeline mode"):
                await client.submit_many([{"name": "x", "key": key}], session=connection)
        await connection.commit()
        assert await client.list() == []
        await client.submit("x", key=key, session=connection)
    assert len(await client.list()) == 1
