"""Draw the set of fakes, or take a published one, and write their codes and features to one file."""

from masquerade.pipeline import program

arguments = program.parse_arguments(__doc__, named=("backbones",))


def work(run) -> None:
    import torch

    from masquerade.core.images import to_uint8
    from masquerade.methods.latent import fakes
    from masquerade.methods.latent.space import LatentSpace
    from masquerade.params.blocks import FakesSettings

    torch.set_num_threads(arguments.threads)
    settings = arguments.params.settings("fakes", FakesSettings)
    if settings.published:
        fakes.adopt(settings, arguments.backbones, arguments.outputs[0])
        return
    space = LatentSpace(arguments.backbones)
    samples = fakes.write_fakes(
        space, arguments.outputs[0], settings.count, settings.psi, arguments.params["data_seed"]
    )
    run.log_image("fakes", program.join_images(to_uint8(samples.numpy())))


if __name__ == "__main__":
    program.main("fakes", arguments, work)
