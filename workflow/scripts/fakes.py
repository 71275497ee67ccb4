"""Draw the set of fakes: their codes and features, in one file."""

from masquerade import steps

given = steps.arguments(__doc__, lists=("backbones",))


def work(run) -> None:
    import torch

    from masquerade.images import to_uint8
    from masquerade.latent import fakes
    from masquerade.latent.world import World

    torch.set_num_threads(given.threads)
    asked = given.params["fakes"]
    world = World({path.stem: path for path in given.backbones})
    shown = fakes.write(world, given.outputs[0], asked["count"], asked["psi"], given.params["data_seed"])
    run.picture("fakes", steps.row(to_uint8(shown.numpy())))


if __name__ == "__main__":
    steps.main("fakes", given, work)
